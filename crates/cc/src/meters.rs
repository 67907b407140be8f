//! Meters that several algorithms share.

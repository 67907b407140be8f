//! Transfers between a server and its clients over loopback.

mod files;
mod harness;
mod hostile;

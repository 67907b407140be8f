//! Sender and receiver together, over a path that the tests control.

mod pipe;
mod response;
mod transport;

//! Sender and receiver over a path that the tests control.

mod connection;
mod l4s;
mod receiving;
mod response;
mod timers;
mod transport;

//! The engine: two ends of a connection over an in-memory path that impairs packets.

mod end;
mod path;

mod closing;
mod messages;
mod opening;
mod recovery;

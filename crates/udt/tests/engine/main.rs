//! Two ends of a connection over a path in memory that loses, delays, reorders and repeats.

mod end;
mod path;

mod closing;
mod messages;
mod opening;
mod recovery;

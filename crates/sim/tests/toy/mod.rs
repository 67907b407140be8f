//! A minimal protocol for testing the engine alone. The sender keeps a window of packets in flight
//! and treats all as lost after a timeout; the receiver acknowledges every packet.

use dumbbell_net::{Endpoint, Packet};
use dumbbell_sim::SimEndpoint;
use dumbbell_units::{Span, Time};

/// A packet of both ends, padded to the size of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToyPacket {
    pub number: u32,
    pub size: u32,
    _padding: [u32; 7],
}

impl Packet for ToyPacket {
    fn size(&self) -> u32 {
        self.size
    }
}

#[derive(Clone, Debug)]
pub enum Toy {
    Sender { window: u32, in_flight: u32, next: u32, timer: Time, timeout: Span },
    Receiver { reply: Option<u32> },
}

impl Toy {
    pub fn sender(window: u32, start: Time, timeout: Span) -> Toy {
        Toy::Sender { window, in_flight: window, next: 0, timer: start, timeout }
    }

    pub fn receiver() -> Toy {
        Toy::Receiver { reply: None }
    }
}

impl Endpoint for Toy {
    type Packet = ToyPacket;

    fn handle(&mut self, now: Time, packet: &ToyPacket) {
        match self {
            Toy::Sender { in_flight, timer, timeout, .. } => {
                *in_flight = in_flight.saturating_sub(1);
                *timer = now + *timeout;
            }
            Toy::Receiver { reply } => *reply = Some(packet.number),
        }
    }

    fn poll(&mut self, now: Time) -> Option<ToyPacket> {
        let (number, size) = match self {
            Toy::Sender { window, in_flight, next, timer, timeout } => {
                if now >= *timer {
                    *timer = now + *timeout;
                    *in_flight = 0;
                }
                if in_flight >= window {
                    return None;
                }
                *in_flight += 1;
                *next += 1;
                (*next - 1, 1500)
            }
            Toy::Receiver { reply } => (reply.take()?, 52),
        };
        Some(ToyPacket { number, size, _padding: [0; 7] })
    }

    fn next_timeout(&self) -> Time {
        match self {
            Toy::Sender { timer, .. } => *timer,
            Toy::Receiver { .. } => Time::MAX,
        }
    }
}

impl SimEndpoint for Toy {}

//! A path as a test fixture: two endpoints without I/O on a link of 10 Mbit/s and 20 ms with CoDel,
//! and assertions on throughput and delay. `cargo run -p dumbbell-sim --example fixture`
//!
//! The protocol is a toy; a stack implements [`DatagramEndpoint`] in the same way around its own
//! connection, as `dumbbell-quic` does for quinn-proto and noq-proto.

use dumbbell_net::{AqmConfig, CodelConfig};
use dumbbell_sim::{DatagramEndpoint, EcnCodepoint, LinkSpec, RunOutput, ScenarioError, run_ends};
use dumbbell_units::{Span, Time};

/// Sends packets of 1200 bytes; each mark halves the window.
struct Sender {
    window: f64,
    in_flight: f64,
}

impl DatagramEndpoint for Sender {
    fn handle(&mut self, _now: Time, acknowledgement: &[u8], _ecn: EcnCodepoint) {
        let is_marked = acknowledgement[0] == EcnCodepoint::Ce.bits();
        self.window += if is_marked { -self.window / 2.0 } else { 1.0 / self.window };
        self.in_flight -= 1.0;
    }
    fn poll(&mut self, _now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        (self.in_flight + 1.0 <= self.window).then(|| {
            payload.resize(1200, 0);
            self.in_flight += 1.0;
            EcnCodepoint::Ect0
        })
    }
    fn next_timeout(&self) -> Time {
        if self.in_flight == 0.0 { Time::ZERO } else { Time::MAX }
    }
}

/// Acknowledges every packet with its mark.
struct Receiver(Option<u8>);

impl DatagramEndpoint for Receiver {
    fn handle(&mut self, _now: Time, _payload: &[u8], ecn: EcnCodepoint) {
        self.0 = Some(ecn.bits());
    }
    fn poll(&mut self, _now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        payload.push(self.0.take()?);
        Some(EcnCodepoint::NotEct)
    }
    fn next_timeout(&self) -> Time {
        Time::MAX
    }
}

/// Both ends for 20 s on the link.
///
/// # Errors
/// None: the link is valid.
pub fn on_the_link() -> Result<RunOutput, ScenarioError> {
    let aqm = Some(AqmConfig::Codel(CodelConfig::default()));
    let link = LinkSpec { rate_bps: Some(10e6), delay_ns: 10_000_000, aqm, ..LinkSpec::default() };
    let sender = Box::new(Sender { window: 10.0, in_flight: 0.0 });
    let ends = [sender as Box<dyn DatagramEndpoint>, Box::new(Receiver(None))];
    run_ends(link, Span::from_millis(10), ends, Span::from_secs(20))
}

fn main() -> Result<(), ScenarioError> {
    let output = on_the_link()?;
    let rate = output.links.sent_bytes.last().map_or(0.0, |&bytes| bytes as f64 * 8.0 / 20.0);
    let delay = output.flows.queue_delay_p95[0].unwrap_or(f64::INFINITY);
    println!("{:.2} Mbit/s, 95 % of packets within {:.1} ms of queue", rate / 1e6, delay * 1e3);
    assert!(rate > 9e6, "the link is not used");
    assert!(delay < 0.015, "the queue is too long");
    Ok(())
}

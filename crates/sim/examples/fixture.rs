//! A path as a test fixture: two endpoints without I/O on a link of 10 Mbit/s and 20 ms with CoDel,
//! and assertions on throughput and delay. `cargo run -p dumbbell-sim --example fixture`
//!
//! The protocol is a toy; a stack implements [`DatagramEndpoint`] in the same way around its own
//! connection, as `dumbbell-quic` does for quinn-proto and noq-proto.

use dumbbell_net::{AqmConfig, CodelConfig};
use dumbbell_sim::{DatagramEndpoint, EcnCodepoint, LinkSpec, RunOutput, ScenarioError, run_ends};
use dumbbell_units::{Span, Time};

/// Sends numbered packets of 1200 bytes and halves its window once per round trip with marks.
struct Sender {
    window: f64,
    next: u64,
    acked: u64,
    recovered: u64,
}

impl DatagramEndpoint for Sender {
    fn handle(&mut self, _now: Time, payload: &[u8], _ecn: EcnCodepoint) {
        let number = u64::from_be_bytes(payload[..8].try_into().expect("eight bytes"));
        self.acked = self.acked.max(number + 1);
        match payload[8] == EcnCodepoint::Ce.bits() && number >= self.recovered {
            true => (self.window, self.recovered) = (self.window / 2.0, self.next),
            false => self.window += 1.0 / self.window,
        }
    }

    fn poll(&mut self, _now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        (((self.next - self.acked) as f64) < self.window.floor()).then(|| {
            payload.extend_from_slice(&self.next.to_be_bytes());
            payload.resize(1200, 0);
            self.next += 1;
            EcnCodepoint::Ect0
        })
    }

    fn next_timeout(&self) -> Time {
        if self.next == 0 { Time::ZERO } else { Time::MAX }
    }
}

/// Acknowledges every packet with its number and its mark.
#[derive(Default)]
struct Receiver(Option<[u8; 9]>);

impl DatagramEndpoint for Receiver {
    fn handle(&mut self, _now: Time, payload: &[u8], ecn: EcnCodepoint) {
        let mut ack = [0; 9];
        ack[..8].copy_from_slice(&payload[..8]);
        ack[8] = ecn.bits();
        self.0 = Some(ack);
    }

    fn poll(&mut self, _now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        payload.extend_from_slice(&self.0.take()?);
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
    let link = LinkSpec {
        rate_bps: Some(10e6),
        delay_ns: 10_000_000,
        aqm: Some(AqmConfig::Codel(CodelConfig::default())),
        ..LinkSpec::default()
    };
    let sender = Sender { window: 10.0, next: 0, acked: 0, recovered: 0 };
    let ends: [Box<dyn DatagramEndpoint>; 2] = [Box::new(sender), Box::<Receiver>::default()];
    run_ends(link, Span::from_millis(10), ends, Span::from_secs(20))
}

fn main() -> Result<(), ScenarioError> {
    let output = on_the_link()?;
    let rate = *output.links.sent_bytes.last().expect("a sample") as f64 * 8.0 / 20.0;
    let delay = output.flows.queue_delay_p95[0].expect("packets arrived");
    println!("{:.2} Mbit/s, 95 % of packets within {:.1} ms of queue", rate / 1e6, delay * 1e3);
    assert!(rate > 9e6, "the link is not used");
    assert!(delay < 0.015, "the queue is too long");
    assert_eq!(output.links.dropped.last(), Some(&0), "marks take the place of drops");
    Ok(())
}

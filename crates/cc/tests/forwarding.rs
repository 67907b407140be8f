//! `Algorithm` hands every method of `CongestionControl` on to the algorithm inside it.
//!
//! The methods are read from the trait's source, so that a method added there (with a default body,
//! which would hide that it is not forwarded) fails this test until it is forwarded and recorded.
//! One macro arm forwards for all variants, so `Custom` stands for them.

use dumbbell_cc::{
    Ack, Algorithm, CongestionControl, CongestionEvent, ControlParameters, Metric, Path, Sent,
};
use dumbbell_units::Time;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

type Calls = Arc<Mutex<BTreeSet<&'static str>>>;

/// Records the methods called, and returns what no default body would.
#[derive(Clone, Debug)]
struct Recorder(Calls);

impl Recorder {
    fn record(&self, method: &'static str) {
        self.0.lock().expect("no test panics while recording").insert(method);
    }
}

const CONTROL: ControlParameters =
    ControlParameters::new(7.0).with_ssthresh(5.0).with_min_send_quantum(Some(3));
const TIMER: Time = Time::from_nanos(42);
const SHOWN: Metric = Metric { name: "shown", value: 1.0 };

impl CongestionControl for Recorder {
    fn on_ack(&mut self, _path: &Path, _ack: &Ack) {
        self.record("on_ack");
    }

    fn on_congestion(&mut self, _path: &Path, _event: &CongestionEvent) {
        self.record("on_congestion");
    }

    fn control(&self) -> ControlParameters {
        self.record("control");
        CONTROL
    }

    fn on_established(&mut self, _path: &Path) {
        self.record("on_established");
    }

    fn on_sent(&mut self, _path: &Path, _sent: &Sent) {
        self.record("on_sent");
    }

    fn on_spurious_loss(&mut self, _path: &Path) {
        self.record("on_spurious_loss");
    }

    fn on_restart_after_idle(&mut self, _cwnd: f64) {
        self.record("on_restart_after_idle");
    }

    fn on_mtu_update(&mut self, _path: &Path, _previous_mss: u32) {
        self.record("on_mtu_update");
    }

    fn on_persistent_congestion(&mut self, _path: &Path) {
        self.record("on_persistent_congestion");
    }

    fn on_packet_discarded(&mut self, _path: &Path, _packets: u32) {
        self.record("on_packet_discarded");
    }

    fn on_receive_window_penalty(&mut self, _path: &Path) {
        self.record("on_receive_window_penalty");
    }

    fn on_timer(&mut self, _path: &Path) {
        self.record("on_timer");
    }

    fn next_timer(&self) -> Option<Time> {
        self.record("next_timer");
        Some(TIMER)
    }

    fn uses_prr(&self) -> bool {
        self.record("uses_prr");
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.record("inspect");
        show(SHOWN);
    }
}

/// The names of the trait's methods, from its source.
fn methods() -> BTreeSet<&'static str> {
    let (_, body) = include_str!("../src/lib.rs")
        .split_once("pub trait CongestionControl {")
        .expect("the trait is defined in lib.rs");
    let (body, _) = body.split_once("\n}\n").expect("the trait ends");
    let signatures = body.lines().filter_map(|line| line.strip_prefix("    fn "));
    signatures.filter_map(|signature| signature.split('(').next()).collect()
}

#[test]
fn every_method_of_the_trait_reaches_the_algorithm() {
    let calls = Calls::default();
    let mut algorithm = Algorithm::Custom(Box::new(Recorder(Arc::clone(&calls))));
    let path = Path::new(1448, Time::ZERO);
    let loss = CongestionEvent::loss();
    let sent = Sent::new(0);
    algorithm.on_established(&path);
    algorithm.on_ack(&path, &Ack::default());
    algorithm.on_congestion(&path, &loss);
    algorithm.on_sent(&path, &sent);
    algorithm.on_spurious_loss(&path);
    algorithm.on_restart_after_idle(7.0);
    algorithm.on_mtu_update(&path, 1200);
    algorithm.on_persistent_congestion(&path);
    algorithm.on_packet_discarded(&path, 1);
    algorithm.on_receive_window_penalty(&path);
    algorithm.on_timer(&path);
    assert_eq!(algorithm.control(), CONTROL);
    assert_eq!(algorithm.next_timer(), Some(TIMER));
    assert!(!algorithm.uses_prr());
    let mut shown = Vec::new();
    algorithm.inspect(&mut |value| shown.push(value));
    assert_eq!(shown, [SHOWN]);

    let methods = methods();
    assert!(methods.contains("on_ack"), "the trait's source was read");
    assert_eq!(*calls.lock().expect("no test panics while recording"), methods);
}

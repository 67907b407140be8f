//! A user-defined algorithm next to the built-in CUBIC: `cargo run --release --example
//! custom_algorithm`.
//!
//! [`Calm`] keeps a few packets queued at the bottleneck. Once per round trip it estimates its
//! backlog there: the part of its window `cwnd` (packets) that is not in propagation,
//!
//! ```text
//! backlog = cwnd * (1 - min_rtt / rtt)
//! ```
//!
//! (Brakmo and Peterson, "TCP Vegas", 1995). Below `target` the window grows by one packet per
//! round, or doubles at the start; otherwise it shrinks by the excess. `rtt` is the minimum of the
//! round, which the flow's own bursts do not increase. On loss the window is halved.

use dumbbell_cc::{
    Ack, AlgorithmFactory, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters,
    Metric, Path, RoundAggregator, Signal,
};
use dumbbell_sim::{Factories, RunOutput, Scenario, ScenarioError};
use std::collections::BTreeMap;

/// Keeps `target` packets queued.
#[derive(Clone, Debug)]
pub struct Calm {
    target: f64,
    cwnd: f64,
    starting: bool,
    backlog: f64,
    fold: RoundAggregator,
}

impl Calm {
    /// The algorithm at the start of a flow.
    pub fn new(init: &ConnectionConfig, target: f64) -> Calm {
        Calm {
            target,
            cwnd: init.initial_window,
            starting: true,
            backlog: 0.0,
            fold: RoundAggregator::default(),
        }
    }
}

impl CongestionControl for Calm {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let Some(round) = self.fold.update(path, ack) else { return };
        let (Some(min_rtt), Some((rtt, _))) = (path.min_rtt, round.rtts()) else { return };
        if path.ca_state.is_reducing() {
            return;
        }
        self.backlog = self.cwnd * (1.0 - min_rtt.as_secs_f64() / rtt.as_secs_f64());
        if self.backlog < self.target {
            self.cwnd += if self.starting { round.delivered as f64 } else { 1.0 };
        } else {
            self.cwnd -= self.backlog - self.target;
            self.starting = false;
        }
    }

    fn on_congestion(&mut self, _path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            self.cwnd = (self.cwnd / 2.0).max(2.0);
            self.starting = false;
        }
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
            self.starting = true;
        }
    }

    fn control(&self) -> ControlParameters {
        let ssthresh = if self.starting { f64::INFINITY } else { self.cwnd };
        ControlParameters::new(self.cwnd).with_ssthresh(ssthresh)
    }

    fn on_established(&mut self, path: &Path) {
        self.fold.begin(path);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "backlog", value: self.backlog });
    }
}

/// One flow alone on 100 Mbit/s and 40 ms for 20 s.
///
/// # Errors
/// If the scenario is not valid.
pub fn alone(cc: &str) -> Result<RunOutput, ScenarioError> {
    let json = r#"{
        "duration_ns": 20000000000, "sample_ns": 100000000,
        "links": [{"name": "l", "rate_bps": 1e8, "delay_ns": 20000000, "queue": {"bytes": 500000}}],
        "flows": [{"name": "f", "cc": "CC", "path": ["l"], "return_delay_ns": 20000000}]
    }"#;
    let calm = AlgorithmFactory::new(|init| Calm::new(init, 4.0));
    let algorithms = BTreeMap::from([("calm".to_owned(), calm)]);
    let factories = Factories { algorithms, ..Factories::default() };
    Scenario::from_json_with(&json.replace("CC", cc), &factories)?.run()
}

fn main() -> Result<(), ScenarioError> {
    for cc in ["cubic", "calm"] {
        let flows = alone(cc)?.flows;
        let rate = flows.delivered[0] as f64 * 8.0 / 20.0 / 1e6;
        let delay = flows.queue_delay_mean[0].unwrap_or(0.0) * 1e3;
        println!("{cc}: {rate:.1} Mbit/s, {delay:.2} ms in the queue");
    }
    Ok(())
}

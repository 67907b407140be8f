//! Records the events that an algorithm receives and its outputs.

use crate::native::{Output, Program};
use dumbbell_cc::ext::Subflow;
use dumbbell_cc::{
    Ack, Algorithm, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters,
    Metric, Path, Sent, Signal,
};
use dumbbell_units::Span;
use std::fmt::Write;

/// An algorithm whose events and outputs are recorded.
pub struct Recorder {
    /// The algorithm.
    pub algorithm: Algorithm,
    init: ConnectionConfig,
    events: String,
    outputs: Vec<Output>,
    settled: Vec<bool>,
}

/// An event, in the columns of `struct event` in `native.c`, or 0.
#[derive(Default)]
struct Event<'a> {
    kind: char,
    ack: Option<&'a Ack>,
    new_episode: bool,
}

impl Recorder {
    /// The algorithm of this name.
    pub fn new(name: &str, init: ConnectionConfig) -> Recorder {
        let algorithm = Algorithm::parse(name, &init).expect("a built-in algorithm");
        Recorder {
            algorithm,
            init,
            events: String::new(),
            outputs: Vec::new(),
            settled: Vec::new(),
        }
    }

    fn note(&mut self, path: &Path, event: &Event) {
        let ns = |span: Option<Span>| span.map_or(0, Span::as_nanos);
        let no_ack = Ack::default();
        let ack = event.ack.unwrap_or(&no_ack);
        let rate = ack.rate.unwrap_or_default();
        let columns = [
            path.now.as_nanos(),
            ns(path.srtt),
            ns(path.min_rtt),
            path.delivered,
            path.delivered_at.as_nanos(),
            path.lost,
            path.in_flight.into(),
            path.ca_state as u64,
            path.window_full.into(),
            path.cwnd_limited.into(),
            ack.delivered.into(),
            ack.lost.into(),
            ns(ack.rtt),
            ack.prior_in_flight.into(),
            ack.rate.is_some().into(),
            rate.send_state.delivered,
            rate.delivered.into(),
            rate.interval.as_nanos(),
            rate.send_state.app_limited.into(),
            self.init.mss.into(),
            self.init.initial_window as u64,
            event.new_episode.into(),
            path.una,
            path.next_seq,
            path.marked,
            path.multipath.siblings.len() as u64,
        ];
        let siblings = path.multipath.siblings.iter().flat_map(sibling);
        self.events.push(event.kind);
        for column in columns.into_iter().chain(siblings) {
            write!(self.events, " {column}").expect("writing to a string cannot fail");
        }
        self.events.push('\n');
        let ControlParameters { cwnd, ssthresh, pacing_rate, .. } = self.algorithm.control();
        let pacing_rate = pacing_rate.map_or(0.0, |rate| rate.bytes_per_sec());
        self.outputs.push(Output { cwnd, ssthresh, pacing_rate });
        self.settled.push(event.ack.is_some() && !path.ca_state.is_reducing());
    }

    /// Pairs of outputs, the algorithm's and the program's, after each event.
    pub fn replay(&self, program: &Program) -> Vec<(Output, Output)> {
        let outputs = program.run(&self.events);
        assert_eq!(outputs.len(), self.outputs.len(), "one output per event");
        self.outputs.iter().copied().zip(outputs).collect()
    }
}

/// The outputs of a replay after acknowledgements outside of recovery.
pub fn settled(recorder: &Recorder, pairs: Vec<(Output, Output)>) -> Vec<(Output, Output)> {
    let settled = pairs.into_iter().zip(&recorder.settled);
    settled.filter_map(|(pair, &settled)| settled.then_some(pair)).collect()
}

/// Window in 2^-32 packets, ns, packets.
fn sibling(sibling: &Subflow) -> [u64; 4] {
    let [since, between] = sibling.delivered_between_losses;
    let cwnd = (sibling.cwnd * 4_294_967_296.0) as u64;
    [cwnd, sibling.srtt.as_nanos(), since, between]
}

impl CongestionControl for Recorder {
    fn on_established(&mut self, path: &Path) {
        self.algorithm.on_established(path);
        self.note(path, &Event { kind: 'I', ..Event::default() });
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.algorithm.inspect(show);
    }

    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.algorithm.on_ack(path, ack);
        self.note(path, &Event { kind: 'A', ack: Some(ack), ..Event::default() });
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.algorithm.on_congestion(path, event);
        let new_episode = event.new_episode;
        match event.signal {
            // The kernel reports further losses with the acknowledgement only.
            Signal::Loss if !new_episode => {}
            Signal::Loss => self.note(path, &Event { kind: 'L', new_episode, ..Event::default() }),
            Signal::Timeout => {
                self.note(path, &Event { kind: 'T', new_episode, ..Event::default() });
            }
            Signal::Ecn => self.note(path, &Event { kind: 'E', new_episode, ..Event::default() }),
        }
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        self.algorithm.on_sent(path, sent);
        let new_episode = sent.from_idle && sent.app_limited;
        self.note(path, &Event { kind: 'S', new_episode, ..Event::default() });
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.algorithm.on_spurious_loss(path);
        self.note(path, &Event { kind: 'U', ..Event::default() });
    }

    fn control(&self) -> ControlParameters {
        self.algorithm.control()
    }
}

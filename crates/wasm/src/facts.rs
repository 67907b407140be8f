//! The facts that algorithms receive, as numbers, which `web/src/engine/own.ts` reads. NaN is null.

use dumbbell_cc::ext::{Subflow, UdtReport};
use dumbbell_cc::{
    Ack, CaState, CongestionEvent, ControlParameters, Path, RoundStats, SendState, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};

/// Facts of the path come first.
const PATH: usize = 13;
/// Those of an event follow; the last two are the arguments of a window rule.
const EVENT: usize = 23;

/// The facts of a path and an event, then those of the other subflows.
pub(crate) fn facts(path: &Path, event: &[f64], arguments: [f64; 2]) -> Vec<f64> {
    let mut facts = Vec::from(of_path(path));
    facts.extend_from_slice(event);
    facts.resize(PATH + EVENT - 2, 0.0);
    facts.extend(arguments);
    facts.extend(path.multipath.siblings.iter().flat_map(of_subflow));
    facts
}

fn seconds(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, Span::as_secs_f64)
}

fn at(time: Time) -> f64 {
    time.as_secs_f64()
}

fn flag(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

fn of_path(path: &Path) -> [f64; PATH] {
    let state = match path.ca_state {
        CaState::Open => 0.0,
        CaState::Disorder => 1.0,
        CaState::Cwr => 2.0,
        CaState::Recovery => 3.0,
        CaState::Loss => 4.0,
    };
    [
        at(path.now),
        f64::from(path.mss),
        seconds(path.srtt),
        seconds(path.min_rtt),
        f64::from(path.in_flight),
        path.delivered as f64,
        path.lost as f64,
        path.marked as f64,
        state,
        flag(path.cwnd_limited),
        path.next_seq as f64,
        path.una as f64,
        path.pacing_rate.map_or(f64::NAN, Rate::bytes_per_sec),
    ]
}

fn of_subflow(subflow: &Subflow) -> [f64; 6] {
    let [last, previous] = subflow.delivered_between_losses;
    [
        subflow.cwnd,
        subflow.srtt.as_secs_f64(),
        last as f64,
        previous as f64,
        flag(subflow.slow_start),
        flag(subflow.active),
    ]
}

fn of_send_state(state: Option<SendState>) -> [f64; 4] {
    state.map_or([f64::NAN; 4], |state| {
        let in_flight = f64::from(state.in_flight);
        [at(state.sent_at), state.delivered as f64, in_flight, flag(state.app_limited)]
    })
}

fn of_report(report: Option<UdtReport>) -> [f64; 6] {
    report.map_or([f64::NAN; 6], |report| {
        [
            f64::from(report.advanced),
            report.rtt.as_secs_f64(),
            report.rtt_var.as_secs_f64(),
            report.arrival_rate,
            report.capacity,
            f64::from(report.window),
        ]
    })
}

pub(crate) fn of_ack(ack: &Ack) -> Vec<f64> {
    let counts = [ack.delivered, ack.acked, ack.lost, ack.marked].map(f64::from);
    let sample = ack.rate.map_or([f64::NAN; 5], |sample| {
        let [delivered, lost, marked] = [sample.delivered, sample.lost, sample.marked];
        let [delivered, lost, marked] = [delivered, lost, marked].map(f64::from);
        [sample.rate.bytes_per_sec(), delivered, sample.interval.as_secs_f64(), lost, marked]
    });
    let rtt = [seconds(ack.rtt), f64::from(ack.prior_in_flight)];
    let state = of_send_state(ack.rate.map(|sample| sample.send_state));
    [&counts[..], &rtt, &sample, &state, &of_report(ack.udt)].concat()
}

pub(crate) fn of_event(event: &CongestionEvent) -> Vec<f64> {
    let signal = match event.signal {
        Signal::Loss if event.is_nak => 3.0,
        Signal::Loss => 0.0,
        Signal::Ecn => 1.0,
        Signal::Timeout => 2.0,
    };
    let facts = [signal, flag(event.new_episode), f64::from(event.packets), event.seq as f64];
    [facts, of_send_state(event.send_state)].concat()
}

pub(crate) fn of_sent(sent: &Sent) -> [f64; 4] {
    [sent.seq as f64, flag(sent.retransmission), flag(sent.from_idle), flag(sent.app_limited)]
}

pub(crate) fn of_round(round: &RoundStats) -> [f64; 12] {
    let (min, max) = round.rtts().unzip();
    [
        round.number as f64,
        at(round.start),
        round.duration().as_secs_f64(),
        round.delivered as f64,
        round.lost as f64,
        round.marked as f64,
        seconds(min),
        round.rtt_mean().unwrap_or(f64::NAN),
        seconds(max),
        round.rate().bytes_per_sec(),
        round.max_rate.bytes_per_sec(),
        flag(round.app_limited),
    ]
}

/// The window, the threshold and the pacing rate in the first places of an answer.
pub(crate) fn control_of(facts: &[f64]) -> ControlParameters {
    let pacing = Some(facts[2]).filter(|rate| !rate.is_nan()).map(Rate::from_bytes_per_sec);
    ControlParameters::new(facts[0]).with_ssthresh(facts[1]).with_pacing_rate(pacing)
}

//! An end of a flow: an engine and its end of the control channel.

use super::control::{ControlStream, is_control};
use crate::engine::{Channel, Engine, Stats};
use dumbbell_cc::Metric;
use dumbbell_sim::{DatagramEndpoint, EcnCodepoint, FlowRow, SeriesRow};
use dumbbell_units::Time;

/// Fills in the current state of both ends, in the simulator and on the testbed.
pub fn fill_series_row(sender: &Stats, receiver: &Stats, row: &mut SeriesRow) {
    let nan = f32::NAN;
    *row = SeriesRow {
        cwnd: nan,
        ssthresh: nan,
        srtt: nan,
        rtt: nan,
        min_rtt: nan,
        pacing_rate: sender.rate.map_or(nan, |rate| rate as f32),
        delivery_rate: nan,
        sent: sender.sent,
        retransmitted: sender.retransmitted,
        lost: sender.lost,
        ..*row
    };
    add_to_series_row(receiver, row);
}

fn add_to_series_row(receiver: &Stats, row: &mut SeriesRow) {
    (row.delivered, row.received) = (receiver.delivered, receiver.received);
    row.lost += receiver.lost;
}

/// Fills in the state of both ends at the end of a run.
pub fn fill_flow_row(sender: &Stats, receiver: &Stats, row: &mut FlowRow) {
    *row = FlowRow {
        completed: sender.completed.map(Time::as_secs_f64),
        sent: sender.sent,
        retransmitted: sender.retransmitted,
        lost: sender.lost,
        timeouts: sender.timeouts,
        recoveries: sender.recoveries,
        ..*row
    };
    add_to_flow_row(receiver, row);
}

fn add_to_flow_row(receiver: &Stats, row: &mut FlowRow) {
    (row.delivered, row.received) = (receiver.delivered, receiver.received);
    row.lost += receiver.lost;
}

/// The sender or the receiver of a flow.
pub(super) struct End {
    engine: Box<dyn Engine>,
    control: ControlStream,
    start: Time,
    is_sender: bool,
}

impl End {
    pub(super) fn sender(
        engine: impl Engine + 'static,
        start: Time,
        seed: u64,
    ) -> Box<dyn DatagramEndpoint> {
        End::boxed(Box::new(engine), start, seed, true)
    }

    pub(super) fn receiver(
        engine: impl Engine + 'static,
        start: Time,
        seed: u64,
    ) -> Box<dyn DatagramEndpoint> {
        End::boxed(Box::new(engine), start, !seed, false)
    }

    fn boxed(
        engine: Box<dyn Engine>,
        start: Time,
        seed: u64,
        is_sender: bool,
    ) -> Box<dyn DatagramEndpoint> {
        let control = ControlStream::new(start, seed);
        Box::new(End { engine, control, start, is_sender })
    }

    fn pass(&mut self, now: Time, channel: Channel, bytes: &[u8]) {
        self.engine.handle(now, channel, bytes).expect("both ends speak one protocol");
    }
}

impl DatagramEndpoint for End {
    fn handle(&mut self, now: Time, payload: &[u8], _ecn: EcnCodepoint) {
        if !is_control(payload) {
            return self.pass(now, Channel::Data, payload);
        }
        self.control.handle(now, payload);
        while let Some(bytes) = self.control.read() {
            self.pass(now, Channel::Control, &bytes);
        }
    }

    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        if now < self.start {
            return None;
        }
        loop {
            if self.control.poll(now, payload) {
                return Some(EcnCodepoint::NotEct);
            }
            match self.engine.poll(now, payload)? {
                Channel::Data => return Some(EcnCodepoint::NotEct),
                Channel::Control => {
                    self.control.write(payload);
                    payload.clear();
                }
            }
        }
    }

    fn next_timeout(&self) -> Time {
        self.engine.next_timeout().min(self.control.next_timeout()).max(self.start)
    }

    fn sample(&self, row: &mut SeriesRow) {
        let stats = self.engine.stats();
        match self.is_sender {
            true => fill_series_row(&stats, &Stats::default(), row),
            false => add_to_series_row(&stats, row),
        }
    }

    fn finish(&self, row: &mut FlowRow) {
        let stats = self.engine.stats();
        match self.is_sender {
            true => fill_flow_row(&stats, &Stats::default(), row),
            false => add_to_flow_row(&stats, row),
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.engine.inspect(&mut |name, value| show(Metric { name, value }));
    }

    fn is_complete(&self) -> bool {
        self.engine.stats().completed.is_some()
    }
}

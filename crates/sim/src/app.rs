//! Applications that wait for what they sent to arrive: requests and responses, and a video client.

use crate::draws::Draws;
use crate::tables::{SegmentRow, Segments, TransferRow, Transfers};
use crate::transfer_spec::Sizes;
use crate::video::{VideoClient, VideoSpec};
use dumbbell_tcp::Dialogue;
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The application of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppSpec {
    /// A client that requests responses, one after the other.
    Requests(RequestSpec),
    /// A client that plays video.
    Video(VideoSpec),
}

/// Requests and responses over one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// Mean of the time from a response to the next request, ns.
    pub think_ns: u64,
    /// Whether that time is exponentially distributed.
    pub is_random: bool,
    /// Sizes of the responses.
    pub sizes: Sizes,
}

/// What an application has recorded. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AppLog(Arc<Mutex<Records>>);

/// Responses, and segments of video; their flow is filled in later.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) responses: Vec<TransferRow>,
    pub(crate) segments: Vec<SegmentRow>,
}

impl AppLog {
    pub(crate) fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().expect("no code panics while it holds the records")
    }
}

/// What the applications of flows have recorded, by the index of the flow.
#[derive(Clone, Debug, Default)]
pub struct AppLogs(pub BTreeMap<u32, AppLog>);

impl AppLogs {
    /// Transfers, and the responses that were requested until `now` (s), in the order of their starts.
    pub fn with_responses(&self, table: Transfers, now: f64) -> Transfers {
        let mut responses = Vec::new();
        for (&flow, log) in &self.0 {
            let records = log.records();
            let asked = records.responses.iter().filter(|row| row.start <= now);
            responses.extend(asked.map(|row| TransferRow { flow, ..*row }));
        }
        if responses.is_empty() {
            return table;
        }
        responses.extend(table.rows());
        responses.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.flow.cmp(&b.flow)));
        let mut all = Transfers::with_capacity(responses.len());
        responses.into_iter().for_each(|row| all.push(row));
        all
    }

    /// The segments of video that were requested until `now` (s).
    pub fn segments(&self, now: f64) -> Segments {
        let mut table = Segments::default();
        for (&flow, log) in &self.0 {
            let records = log.records();
            for row in records.segments.iter().filter(|row| row.start <= now) {
                table.push(SegmentRow { flow, ..*row });
            }
        }
        table
    }
}

impl AppSpec {
    /// Whether all numbers are valid, and which ones are.
    pub(crate) fn is_valid(&self) -> (bool, &'static str) {
        match self {
            AppSpec::Requests(requests) => requests.sizes.is_valid(),
            AppSpec::Video(video) => video.is_valid(),
        }
    }

    /// The application with its log. The two seeds draw sizes and times.
    pub(crate) fn make(&self, seeds: [u64; 2], log: AppLog) -> Box<dyn Dialogue> {
        match self {
            AppSpec::Video(spec) => Box::new(VideoClient::new(spec.clone(), log)),
            AppSpec::Requests(spec) => {
                Box::new(Requests { spec: spec.clone(), draws: seeds.map(Draws::new), log })
            }
        }
    }
}

/// A client that requests the next response some time after it has the one before.
struct Requests {
    spec: RequestSpec,
    draws: [Draws; 2],
    log: AppLog,
}

impl Dialogue for Requests {
    fn next(&mut self, now: Time) -> Option<(Span, u64)> {
        let [sizes, times] = &mut self.draws;
        let bytes = self.spec.sizes.draw(sizes);
        let factor = if self.spec.is_random { times.exponential() } else { 1.0 };
        let think = Span::from_nanos((self.spec.think_ns as f64 * factor) as u64);
        let mut records = self.log.records();
        let responses = &mut records.responses;
        // The first request is sent as soon as the connection is open.
        let wait = match responses.last_mut() {
            None => Span::ZERO,
            Some(last) => {
                last.completed = Some(now.as_secs_f64());
                think
            }
        };
        let start = (now + wait).as_secs_f64();
        responses.push(TransferRow { start, bytes, ..TransferRow::default() });
        Some((wait, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_have_the_mean_given_and_the_first_has_none() {
        let spec =
            RequestSpec { think_ns: 100_000_000, is_random: true, sizes: Sizes::Constant(1000) };
        let log = AppLog::default();
        let mut client = AppSpec::Requests(spec).make([1, 2], log.clone());
        assert_eq!(client.next(Time::ZERO), Some((Span::ZERO, 1000)));
        let mut waits = || client.next(Time::ZERO).map_or(0.0, |(wait, _)| wait.as_secs_f64());
        let mean = (0..20_000).map(|_| waits()).sum::<f64>() / 20_000.0;
        // Four standard deviations of the mean are 2.8 ms.
        assert!((mean - 0.1).abs() < 0.0028, "{mean}");
        assert_eq!(log.records().responses[0].completed, Some(0.0));
    }
}

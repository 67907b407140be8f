//! Applications that wait for what they sent to arrive: requests and responses, and a video client.

use crate::draws::Draws;
use crate::tables::{SegmentRow, TransferRow};
use crate::transfer_spec::Sizes;
use crate::video::{VideoClient, VideoSpec};
use dumbbell_tcp::Dialogue;
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};
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
pub(crate) struct AppLog(Arc<Mutex<Records>>);

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

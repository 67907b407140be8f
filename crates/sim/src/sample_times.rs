//! When a run is sampled.

use crate::scenario::Scenario;
use dumbbell_units::{Span, Time};

/// The times at which a run is sampled: 0, every interval, the end of the warm-up, and the end.
#[derive(Clone, Debug)]
pub struct SampleTimes {
    next: Option<Time>,
    interval: Span,
    /// The number of the next sample at an interval.
    number: u64,
    duration: Time,
    warmup: Option<Time>,
}

/// A time at which a run is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTime {
    /// The time.
    pub at: Time,
    /// Whether results count from here on.
    pub ends_warmup: bool,
}

impl SampleTimes {
    /// The times of a run of a scenario.
    pub fn of(scenario: &Scenario) -> SampleTimes {
        let warmup = Time::from_nanos(scenario.warmup_ns);
        SampleTimes {
            next: Some(Time::ZERO),
            interval: Span::from_nanos(scenario.sample_ns),
            number: 0,
            duration: Time::from_nanos(scenario.duration_ns),
            warmup: Some(warmup).filter(|warmup| *warmup > Time::ZERO),
        }
    }
}

impl Iterator for SampleTimes {
    type Item = SampleTime;

    fn next(&mut self) -> Option<SampleTime> {
        let due = self.next?;
        let warmup = self.warmup.take_if(|warmup| *warmup <= due);
        let at = warmup.unwrap_or(due);
        if at == due {
            self.number += 1;
            let later = (Time::ZERO + self.interval * self.number).min(self.duration);
            self.next = Some(later).filter(|later| *later > due);
        }
        Some(SampleTime { at, ends_warmup: warmup.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(warmup_ns: u64) -> Vec<(u64, bool)> {
        let json = r#"{"duration_ns": 10, "sample_ns": 4, "links": [], "flows": []}"#;
        let scenario: Scenario = serde_json::from_str(json).expect("a scenario");
        let scenario = Scenario { warmup_ns, ..scenario };
        SampleTimes::of(&scenario).map(|time| (time.at.as_nanos(), time.ends_warmup)).collect()
    }

    #[test]
    fn samples_are_at_zero_at_every_interval_and_at_the_end() {
        assert_eq!(times(0), [(0, false), (4, false), (8, false), (10, false)]);
    }

    #[test]
    fn the_end_of_the_warmup_is_a_sample_of_its_own_or_one_that_is_due() {
        assert_eq!(times(4), [(0, false), (4, true), (8, false), (10, false)]);
        assert_eq!(times(9), [(0, false), (4, false), (8, false), (9, true), (10, false)]);
    }
}

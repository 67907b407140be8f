//! An algorithm that is told once a round what happened in it, and at once of congestion.

use crate::own::facts;
use crate::own::speaker::{Speaker, overrides};
use dumbbell_cc::{
    Ack, CongestionControl, CongestionEvent, ControlParameters, Metric, Path, RoundAggregator,
    Signal,
};
use dumbbell_units::Time;
use pyo3::prelude::*;

pub struct PerRound {
    speaker: Speaker,
    fold: RoundAggregator,
    hears_congestion: bool,
}

impl PerRound {
    pub fn new(mut speaker: Speaker, object: &Bound<'_, PyAny>, now: Time) -> PyResult<PerRound> {
        speaker.listen(object, "__init__", now)?;
        let hears_congestion = overrides(object, "on_congestion")?;
        Ok(PerRound { speaker, fold: RoundAggregator::default(), hears_congestion })
    }
}

impl CongestionControl for PerRound {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let Some(round) = self.fold.update(path, ack) else { return };
        self.speaker.tell(path, "on_round", facts::Round(round));
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        if self.hears_congestion && (event.new_episode || event.signal == Signal::Timeout) {
            self.speaker.tell(path, "on_congestion", facts::CongestionEvent(*event));
        }
    }

    fn control(&self) -> ControlParameters {
        self.speaker.control
    }

    fn on_established(&mut self, path: &Path) {
        self.fold.begin(path);
    }

    fn uses_prr(&self) -> bool {
        self.speaker.uses_prr
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.speaker.inspect(show);
    }
}

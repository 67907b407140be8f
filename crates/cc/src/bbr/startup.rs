//! Startup: when is the pipe full?
//!
//! While the rate is being raised, the pipe is full when three rounds in a row have not brought 25 %
//! more bandwidth (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.2.2;
//! draft-ietf-ccwg-bbr-06, section 5.3.1.2). Why three: in the first round the receiver may be
//! raising its window, in the second the sender fills it, in the third the samples show it.

use super::version::{FULL_BW_ROUNDS, FULL_BW_THRESH};
use dumbbell_units::Rate;

/// The detector of a plateau in bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FullPipe {
    baseline: Rate,
    rounds: u32,
    now: bool,
    ever: bool,
}

impl FullPipe {
    /// Takes the bandwidth of a round that the application did not limit.
    pub fn observe(&mut self, bw: Rate) {
        if self.now {
            return;
        }
        if bw >= self.baseline * FULL_BW_THRESH {
            self.restart(bw);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_BW_ROUNDS;
        self.ever |= self.now;
    }

    /// Begins to look anew, from a baseline.
    pub fn restart(&mut self, baseline: Rate) {
        *self = FullPipe { baseline, rounds: 0, now: false, ever: self.ever };
    }

    /// Loss shows that the pipe is full.
    pub fn declare_full(&mut self) {
        self.ever = true;
    }

    /// What showed that the pipe is full was a mistake.
    pub fn retract(&mut self) {
        *self = FullPipe::default();
    }

    /// Whether the pipe is full since last begun to look.
    #[inline]
    pub fn now(&self) -> bool {
        self.now
    }

    /// Whether the pipe was ever full.
    #[inline]
    pub fn ever(&self) -> bool {
        self.ever
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(pipe: &mut FullPipe, bws: &[f64]) {
        bws.iter().for_each(|&bw| pipe.observe(Rate::from_bytes_per_sec(bw)));
    }

    #[test]
    fn the_pipe_is_full_after_three_rounds_without_25_percent_growth() {
        let mut pipe = FullPipe::default();
        feed(&mut pipe, &[100.0, 200.0, 249.0, 249.0]);
        assert!(!pipe.ever());
        feed(&mut pipe, &[249.0]);
        assert!(pipe.ever());
    }

    #[test]
    fn growth_of_25_percent_begins_the_count_anew() {
        let mut pipe = FullPipe::default();
        feed(&mut pipe, &[100.0, 110.0, 120.0, 125.0, 130.0, 130.0]);
        assert!(!pipe.ever());
    }

    #[test]
    fn a_restart_does_not_forget_that_the_pipe_was_once_full() {
        let mut pipe = FullPipe::default();
        feed(&mut pipe, &[100.0; 4]);
        pipe.restart(Rate::ZERO);
        assert!(pipe.ever());
    }
}

//! Proportional rate reduction (RFC 9937, as in Linux's `tcp_cwnd_reduction`). During a window
//! reduction, packets leave in proportion to deliveries, so that the window reaches ssthresh when
//! the episode ends. Without it the sender would pause and then send a burst.
//!
//! | here | Linux | RFC 9937 |
//! |---|---|---|
//! | `ssthresh`: the algorithm's, also if it lowers it on the way | `snd_ssthresh` | ssthresh |
//! | `prior_cwnd` | `prior_cwnd` | RecoverFS: SND.NXT - SND.UNA, less bytes SACKed before |
//! | `prr_delivered`, `prr_out` | the same | prr_delivered, prr_out |
//! | `sndcnt` | `sndcnt` | SndCnt |
//! | `safe_ack` | `FLAG_SND_UNA_ADVANCED && !newly_lost` | SafeACK |
//!
//! Linux's denominator is the window before the reduction, the RFC's the flight size: where less than
//! the window is in flight, Linux sends fewer packets per delivery. This follows Linux.

/// One window reduction in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// Window when the reduction began, packets.
    prior_cwnd: u32,
    /// Packets delivered since then.
    prr_delivered: u32,
    /// Packets sent since then.
    prr_out: u32,
    /// The window in force, packets.
    cwnd: u32,
}

impl Prr {
    pub(crate) fn new(prior_cwnd: u32) -> Prr {
        Prr { prior_cwnd: prior_cwnd.max(1), prr_delivered: 0, prr_out: 0, cwnd: prior_cwnd }
    }

    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.prr_out += 1;
    }

    /// `delivered` packets were newly delivered; the reduction's target is `ssthresh`, packets. `safe_ack`:
    /// the cumulative acknowledgement advanced and no packet was newly marked lost.
    pub(crate) fn on_ack(&mut self, ssthresh: u32, in_flight: u32, delivered: u32, safe_ack: bool) {
        if delivered == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let sndcnt = if in_flight > ssthresh {
            let proportion = (u64::from(ssthresh) * u64::from(self.prr_delivered))
                .div_ceil(u64::from(self.prior_cwnd)) as u32;
            proportion.saturating_sub(self.prr_out)
        } else {
            let limit = self.prr_delivered.saturating_sub(self.prr_out).max(delivered)
                + u32::from(safe_ack);
            limit.min(ssthresh - in_flight)
        };
        // The first packet of an episode always leaves (fast retransmit).
        let sndcnt = sndcnt.max(u32::from(self.prr_out == 0));
        self.cwnd = in_flight + sndcnt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_ssthresh_packets_leave_in_proportion_to_deliveries() {
        let (mut prr, mut in_flight) = (Prr::new(100), 100);
        for delivered in 1..=98u32 {
            in_flight -= 1;
            prr.on_ack(50, in_flight, 1, false);
            while in_flight < prr.cwnd() {
                prr.on_sent();
                in_flight += 1;
            }
            assert_eq!(prr.prr_out, delivered.div_ceil(2), "half of {delivered} deliveries");
        }
        assert_eq!(in_flight, 51, "the reduction arrives at ssthresh");
    }

    #[test]
    fn below_ssthresh_a_safe_ack_sends_one_more_than_was_delivered() {
        let mut prr = Prr::new(100);
        prr.on_sent();
        prr.on_ack(50, 10, 2, true);
        assert_eq!(prr.cwnd(), 10 + 3);
        prr.on_ack(50, 10, 2, false);
        assert_eq!(prr.cwnd(), 10 + 3);
    }

    #[test]
    fn the_window_never_exceeds_ssthresh() {
        let mut prr = Prr::new(100);
        prr.on_ack(50, 49, 20, true);
        assert_eq!(prr.cwnd(), 50);
    }

    #[test]
    fn the_first_packet_of_an_episode_always_leaves() {
        let mut prr = Prr::new(100);
        prr.on_ack(2, 90, 1, false);
        assert_eq!(prr.cwnd(), 91);
    }
}

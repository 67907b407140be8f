//! Detection of spurious reductions, by timestamps (Eifel, RFC 3522) or D-SACK (RFC 3708), as Linux's
//! `tcp_may_undo` combines them.

use crate::rtt::is_tick_before;

/// The retransmissions of the last episode; Linux's field names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// First unacknowledged packet when the episode began; `None` if there is no episode that may be
    /// undone.
    undo_marker: Option<u32>,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    undo_retrans: Option<u32>,
    /// Timestamp of the first retransmission.
    retrans_stamp: Option<u32>,
    /// Whether congestion was echoed in the episode or just before: its reduction stays, whether or not
    /// packets were lost (`prior_ssthresh` is 0).
    keeps_reduction: bool,
}

impl Undo {
    /// An episode begins with `retrans_out` retransmissions and perhaps a tail loss probe in flight
    /// (`tcp_init_undo`). While retransmissions are in flight, the next acknowledgement may be for an
    /// original of the episode before.
    pub(crate) fn init(&mut self, una: u32, retrans_out: u32, probe: bool, keeps_reduction: bool) {
        self.undo_marker = Some(una);
        self.keeps_reduction = keeps_reduction;
        let may_be_duplicates = retrans_out + u32::from(probe);
        self.undo_retrans = (may_be_duplicates > 0).then_some(may_be_duplicates);
    }

    /// No retransmission is outstanding: the next one is the first (`tcp_retrans_stamp_cleanup`).
    pub(crate) fn forget_first_retransmission(&mut self) {
        self.retrans_stamp = None;
    }

    /// The episode was undone, or another began that cannot be undone.
    pub(crate) fn clear(&mut self) {
        self.undo_marker = None;
        self.undo_retrans = None;
    }

    /// Congestion was echoed.
    pub(crate) fn keep_reduction(&mut self) {
        self.keeps_reduction = true;
    }

    /// Whether what is undone has the window as before.
    pub(crate) fn restores(&self) -> bool {
        !self.keeps_reduction
    }

    /// A packet was retransmitted.
    pub(crate) fn on_retransmit(&mut self, timestamp: u32) {
        self.retrans_stamp.get_or_insert(timestamp);
        if self.undo_marker.is_some() {
            *self.undo_retrans.get_or_insert(0) += 1;
        }
    }

    /// The receiver reported that packet `number` arrived twice.
    pub(crate) fn on_dsack(&mut self, number: u32) {
        if self.undo_marker.is_some_and(|undo_marker| number >= undo_marker)
            && let Some(undo_retrans) = &mut self.undo_retrans
        {
            *undo_retrans = undo_retrans.saturating_sub(1);
        }
    }

    /// Whether the episode was spurious, as an acknowledgement shows that echoes `echo`, if it has a
    /// timestamp (`tcp_may_undo`).
    pub(crate) fn may_undo(&self, echo: Option<u32>) -> bool {
        self.packet_delayed(echo) || self.all_retrans_dsacked()
    }

    /// Whether an acknowledgement is for an original that arrived late: nothing was retransmitted yet,
    /// or it echoes a timestamp from before the first retransmission (`tcp_packet_delayed`).
    pub(crate) fn packet_delayed(&self, echo: Option<u32>) -> bool {
        let is_before = |first| echo.is_some_and(|echo| is_tick_before(echo, first));
        self.undo_marker.is_some() && self.retrans_stamp.is_none_or(is_before)
    }

    /// Whether the receiver reported every retransmission as a duplicate (`tcp_try_undo_dsack`).
    pub(crate) fn all_retrans_dsacked(&self) -> bool {
        self.undo_marker.is_some() && self.undo_retrans == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_spurious_once_every_retransmission_was_a_duplicate() {
        let mut undo = Undo::default();
        undo.init(10, 0, false, false);
        assert!(!undo.all_retrans_dsacked(), "nothing was retransmitted yet");
        undo.on_retransmit(5);
        undo.on_retransmit(6);
        undo.on_dsack(10);
        assert!(!undo.all_retrans_dsacked());
        undo.on_dsack(11);
        assert!(undo.all_retrans_dsacked());
    }

    #[test]
    fn retransmissions_and_the_probe_in_flight_may_be_duplicates_too() {
        let mut undo = Undo::default();
        undo.init(10, 1, true, false);
        undo.on_dsack(10);
        assert!(!undo.all_retrans_dsacked());
        undo.on_dsack(12);
        assert!(undo.all_retrans_dsacked());
    }

    #[test]
    fn an_echo_older_than_the_first_retransmission_acknowledges_an_original() {
        let mut undo = Undo::default();
        undo.init(10, 0, false, false);
        assert!(undo.packet_delayed(Some(5)), "nothing was retransmitted yet");
        undo.on_retransmit(1_500);
        assert!(undo.packet_delayed(Some(999)));
        assert!(!undo.packet_delayed(Some(1_000)), "the same millisecond");
        assert!(!undo.packet_delayed(Some(3_000)));
        assert!(undo.packet_delayed(Some(u32::MAX - 1_000)), "timestamps wrap");
        assert!(!undo.packet_delayed(None), "no timestamp");
    }
}

//! Telling spurious reductions, so that they can be undone: by timestamps (Eifel, RFC 3522) or by
//! D-SACK (RFC 3708).

/// What is known of the retransmissions of the present episode.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// First packet of the episode; an episode that may be undone is going on.
    undo_marker: Option<u32>,
    /// Retransmissions not yet reported as duplicates; `None` while there were none.
    undo_retrans: Option<u32>,
    /// Timestamp of the first retransmission.
    retrans_stamp: Option<u32>,
}

impl Undo {
    /// An episode begins at packet `una`, while `retransmitting` retransmissions are in flight.
    pub(crate) fn init(&mut self, una: u32, retransmitting: u32) {
        self.undo_marker = Some(una);
        self.undo_retrans = (retransmitting > 0).then_some(retransmitting);
        if retransmitting == 0 {
            self.retrans_stamp = None;
        }
    }

    /// The episode ended. The first retransmission stays known while retransmissions are in
    /// flight: what is acknowledged next may still be an original of this episode.
    pub(crate) fn clear(&mut self) {
        self.undo_marker = None;
        self.undo_retrans = None;
    }

    /// A packet was sent again.
    pub(crate) fn on_retransmit(&mut self, timestamp: u32) {
        self.retrans_stamp.get_or_insert(timestamp);
        if self.undo_marker.is_some() {
            *self.undo_retrans.get_or_insert(0) += 1;
        }
    }

    /// The receiver reported that packet `number` came twice.
    pub(crate) fn on_dsack(&mut self, number: u32) {
        if self.undo_marker.is_some_and(|marker| number >= marker)
            && let Some(unexplained) = &mut self.undo_retrans
        {
            *unexplained = unexplained.saturating_sub(1);
        }
    }

    /// Whether an acknowledgement that advanced echoes a timestamp older than the first
    /// retransmission: it acknowledges an original.
    pub(crate) fn packet_delayed(&self, echo: u32) -> bool {
        self.undo_marker.is_some()
            && self.retrans_stamp.is_some_and(|first| (echo.wrapping_sub(first) as i32) < 0)
    }

    /// Whether every retransmission turned out to be a duplicate.
    pub(crate) fn all_retrans_dsacked(&self) -> bool {
        self.undo_marker.is_some() && self.undo_retrans == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_spurious_once_every_retransmission_came_back_as_a_duplicate() {
        let mut undo = Undo::default();
        undo.init(10, 0);
        assert!(!undo.all_retrans_dsacked(), "nothing was retransmitted yet");
        undo.on_retransmit(5);
        undo.on_retransmit(6);
        undo.on_dsack(10);
        assert!(!undo.all_retrans_dsacked());
        undo.on_dsack(11);
        assert!(undo.all_retrans_dsacked());
    }

    #[test]
    fn an_echo_older_than_the_first_retransmission_acknowledges_an_original() {
        let mut undo = Undo::default();
        undo.init(10, 0);
        undo.on_retransmit(u32::MAX);
        assert!(undo.packet_delayed(u32::MAX - 1));
        assert!(!undo.packet_delayed(u32::MAX));
        assert!(!undo.packet_delayed(3), "timestamps wrap");
    }
}

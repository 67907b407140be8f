//! BBRv1's loss recovery: packet conservation, then slow start, then as before
//! (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.4).
//!
//! In the first round of fast recovery a packet is sent for a packet delivered; from then on the
//! window grows again by what is delivered, less what is lost. When recovery ends, the window is
//! what it was before. A timeout leaves one packet.

use super::window::Window;
use crate::{Ack, CaState, Path};

/// Whether packets are missing and the window may be cut on that account.
#[inline]
pub fn is_recovery(ca_state: CaState) -> bool {
    matches!(ca_state, CaState::Recovery | CaState::Loss)
}

/// How far recovery has come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conservation {
    before: CaState,
    on: bool,
}

impl Conservation {
    /// The transport's phase at the last acknowledgement or timeout.
    #[inline]
    pub fn before(&self) -> CaState {
        self.before
    }

    /// A retransmission timeout.
    pub fn on_timeout(&mut self, path: &Path, window: &mut Window) {
        self.before = CaState::Loss;
        window.set(f64::from(path.in_flight) + 1.0);
    }

    /// A round is over, and conservation with it.
    #[inline]
    pub fn end_round(&mut self) {
        self.on = false;
    }

    /// Cuts or restores the window. Returns whether the window is now conserved, and whether fast
    /// recovery just began, with which a round begins.
    pub fn apply(&mut self, path: &Path, ack: &Ack, window: &mut Window) -> Outcome {
        let released = f64::from(path.in_flight) + f64::from(ack.delivered);
        if ack.lost > 0 {
            window.set(window.get() - f64::from(ack.lost));
        }
        let began = path.ca_state == CaState::Recovery && self.before != CaState::Recovery;
        if began {
            self.on = true;
            window.set(released);
        } else if is_recovery(self.before) && !is_recovery(path.ca_state) {
            self.on = false;
            window.restore();
        }
        self.before = path.ca_state;
        if self.on {
            window.set(window.get().max(released));
        }
        Outcome { began, conserved: self.on }
    }
}

/// What [`Conservation::apply`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Fast recovery just began.
    pub began: bool,
    /// The window is final: a packet out for a packet in.
    pub conserved: bool,
}

#[cfg(test)]
mod tests {
    use super::super::model::Scale;
    use super::*;
    use dumbbell_units::Time;

    fn setup(in_flight: u32, ca_state: CaState) -> (Conservation, Path, Window) {
        let mut path = Path::new(1448, Time::ZERO);
        (path.in_flight, path.ca_state) = (in_flight, ca_state);
        let window = Window::new(Scale { mss: 1448.0, initial_window: 100.0 });
        (Conservation::default(), path, window)
    }

    #[test]
    fn in_the_first_round_of_recovery_a_packet_is_sent_for_a_packet_delivered() {
        let (mut conservation, mut path, mut window) = setup(90, CaState::Recovery);
        let ack = Ack { delivered: 2, lost: 3, ..Ack::default() };
        let outcome = conservation.apply(&path, &ack, &mut window);
        assert_eq!(outcome, Outcome { began: true, conserved: true });
        assert_eq!(window.get(), 92.0);
        path.in_flight = 80;
        conservation.apply(&path, &Ack { delivered: 2, lost: 12, ..Ack::default() }, &mut window);
        assert_eq!(window.get(), 82.0);
    }

    #[test]
    fn the_window_is_restored_when_recovery_ends() {
        let (mut conservation, mut path, mut window) = setup(40, CaState::Recovery);
        window.save(false);
        conservation.apply(&path, &Ack { delivered: 1, ..Ack::default() }, &mut window);
        assert_eq!(window.get(), 41.0);
        path.ca_state = CaState::Open;
        let outcome =
            conservation.apply(&path, &Ack { delivered: 1, ..Ack::default() }, &mut window);
        assert_eq!(outcome, Outcome { began: false, conserved: false });
        assert_eq!(window.get(), 100.0);
    }

    #[test]
    fn a_timeout_leaves_one_packet_beyond_what_is_in_flight() {
        let (mut conservation, path, mut window) = setup(0, CaState::Loss);
        conservation.on_timeout(&path, &mut window);
        assert_eq!(window.get(), 1.0);
    }
}

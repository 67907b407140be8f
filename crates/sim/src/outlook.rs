//! To whom packets are about to come out of a link, so that their memory can be asked for in time.

use crate::engine::EndpointId;

/// How many packets before its own an endpoint's memory is asked for: first where the endpoint is,
/// then the endpoint, then what it points to. Each step needs what the one before has brought.
pub(crate) const AHEAD: [u8; 3] = [16, 10, 4];

/// More than the first step is ahead of the last.
const RING: usize = 16;

/// To whom the next packets go.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    /// A ring with a place for each turn: to whom the packet goes that comes out `AHEAD[0]` packets
    /// later, if not to the one before it.
    coming: [Option<EndpointId>; RING],
    /// Packets that came out, modulo 256.
    turn: u8,
    /// To whom the packet went that was told of last.
    latest: Option<EndpointId>,
}

impl Outlook {
    /// Of an empty link.
    pub(crate) fn new() -> Outlook {
        Outlook { coming: [None; RING], turn: 0, latest: None }
    }

    /// A packet comes out, and the one `AHEAD[0]` packets later goes to `to`, if that is known. Gives
    /// whose turn it is for each step of [`AHEAD`]. A window's packets come two by two: what the first
    /// one asked for is on its way, so it alone counts.
    #[inline]
    pub(crate) fn step(&mut self, to: Option<EndpointId>) -> [Option<EndpointId>; 3] {
        self.turn = self.turn.wrapping_add(1);
        let place = |ahead: u8| usize::from(self.turn.wrapping_sub(AHEAD[0] - ahead)) % RING;
        let first = if to == self.latest { None } else { to };
        self.latest = to;
        self.coming[place(AHEAD[0])] = first;
        AHEAD.map(|ahead| self.coming[place(ahead)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_taken_once_for_packets_of_one_flow_that_follow_each_other() {
        let ids: Vec<_> = [1, 1, 2, 2, 2, 3, 1, 1, 4].into_iter().map(EndpointId).collect();
        let firsts = [Some(1), None, Some(2), None, None, Some(3), Some(1), None, Some(4)];
        let mut outlook = Outlook::new();
        let coming = ids.iter().copied().map(Some).chain([None; 16]);
        for (i, steps) in coming.map(|to| outlook.step(to)).enumerate() {
            for (step, ahead) in steps.into_iter().zip(AHEAD) {
                let of = i.checked_sub(usize::from(AHEAD[0] - ahead));
                let expected = of.and_then(|of| *firsts.get(of)?);
                assert_eq!(step.map(|id| id.0), expected);
            }
        }
    }
}

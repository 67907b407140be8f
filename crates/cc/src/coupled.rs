//! Windows and round-trip times of all subflows of a connection, for the coupled algorithms.
//!
//! Sums include this subflow and its active siblings. A subflow that had a timeout is inactive until
//! its losses are acknowledged. RFC 6356 has no such rule. The MPTCP project's kernel includes such a
//! subflow with its window of one packet
//! (`mptcp_sk_can_send` only checks that it is established), so there OLIA on the surviving path
//! grows half as fast as Reno while a formerly better path is dead.

use crate::Path;

/// A subflow in the equations of a coupled algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Member {
    /// Window, packets.
    pub(crate) cwnd: f64,
    /// Smoothed round-trip time, s.
    pub(crate) rtt: f64,
}

impl Member {
    /// Packets a second.
    #[inline]
    pub(crate) fn rate(self) -> f64 {
        self.cwnd / self.rtt
    }
}

/// The active siblings.
#[inline]
pub(crate) fn siblings(path: &Path) -> impl Iterator<Item = Member> + Clone + '_ {
    let active =
        path.multipath.siblings.iter().filter(|sibling| sibling.active && !sibling.srtt.is_zero());
    active.map(|sibling| Member { cwnd: sibling.cwnd, rtt: sibling.srtt.as_secs_f64() })
}

/// This subflow with the window `cwnd`; `None` before its first round-trip time sample.
#[inline]
pub(crate) fn this_subflow(cwnd: f64, path: &Path) -> Option<Member> {
    let rtt = path.srtt.filter(|srtt| !srtt.is_zero())?.as_secs_f64();
    Some(Member { cwnd, rtt })
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::Path;
    use crate::ext::{Multipath, Subflow};
    use dumbbell_units::{Span, Time};

    /// A path of `rtt` ms whose siblings have these windows and round-trip times in ms.
    pub(crate) fn path(rtt: u64, siblings: &[(f64, u64)]) -> Path {
        let sibling = |&(cwnd, rtt): &(f64, u64)| Subflow::new(cwnd, Span::from_millis(rtt));
        let siblings = siblings.iter().map(sibling).collect();
        let srtt = Some(Span::from_millis(rtt));
        let multipath = Multipath { siblings };
        Path { srtt, multipath, cwnd_limited: true, ..Path::new(1460, Time::ZERO) }
    }

    pub(crate) fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{value}: {expected}");
    }
}

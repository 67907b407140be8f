//! What coupled algorithms have in common: the windows of all subflows of a connection at once.
//!
//! A sum goes over the subflow itself and those of its siblings that may be used at present. That
//! leaves out one that had a timeout until what it lost then is acknowledged, which Linux counts with
//! its window of one packet (`mptcp_sk_can_send` asks only whether it is established): there OLIA's
//! survivor grows half as fast as Reno for as long as a path that was better is dead.

use crate::Path;

/// A subflow as its siblings see it.
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

/// The siblings that may be used.
#[inline]
pub(crate) fn siblings(path: &Path) -> impl Iterator<Item = Member> + Clone + '_ {
    let active =
        path.multipath.siblings.iter().filter(|sibling| sibling.active && !sibling.srtt.is_zero());
    active.map(|sibling| Member { cwnd: sibling.cwnd, rtt: sibling.srtt.as_secs_f64() })
}

/// The subflow itself, of this window; `None` before it has a round-trip time.
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

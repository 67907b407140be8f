//! When each link delivers its next packet.
//!
//! Most networks have one or two links. Scanning a few is cheaper than keeping them ordered.
//!
//! Where links lead to the same link, two packets often arrive there at the same nanosecond, as the
//! departures of the bottleneck clock all senders. If the queue has one place left, their order
//! decides who loses a packet: a fixed order starves a flow (phase effects: Floyd and Jacobson, 1992).
//! So the order of such arrivals is drawn.

use crate::event_queue::EventQueue;
use crate::seeds;
use dumbbell_units::Time;

/// Up to this many links are scanned; more are in an event queue.
const SCAN_MAX_LINKS: usize = 4;

/// The next arrivals of all links.
pub(crate) struct LinkArrivals {
    /// Times of the first links; [`Time::MAX`] for an empty or missing link.
    scanned: [Time; SCAN_MAX_LINKS],
    /// All links, if there are more than [`SCAN_MAX_LINKS`] or if ties are drawn.
    queue: Option<EventQueue>,
    /// From what the order of arrivals at the same time is drawn; `None`: the lowest link is first.
    ties: Option<u64>,
}

impl LinkArrivals {
    /// The arrivals of `links` empty links.
    pub(crate) fn new(links: usize, ties: Option<u64>) -> LinkArrivals {
        let is_queue = links > SCAN_MAX_LINKS || ties.is_some();
        LinkArrivals {
            scanned: [Time::MAX; SCAN_MAX_LINKS],
            queue: is_queue.then(|| EventQueue::new(links)),
            ties,
        }
    }

    /// The next arrival: time and link; [`Time::MAX`] if all are empty.
    #[inline]
    pub(crate) fn first(&self) -> (Time, u32) {
        if let Some(queue) = &self.queue {
            return queue.first();
        }
        let [a, b, c, d] = self.scanned;
        let (ab, cd) = (if b < a { (b, 1) } else { (a, 0) }, if d < c { (d, 3) } else { (c, 2) });
        if cd.0 < ab.0 { cd } else { ab }
    }

    /// Sets the time of a link's next arrival; [`Time::MAX`] for none.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, at: Time) {
        match &mut self.queue {
            Some(queue) => {
                let rank = self.ties.map_or(0, |seed| seeds::rank(seed, at.as_nanos(), link));
                queue.set_ranked(link, at, rank);
            }
            None => self.scanned[link as usize] = at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_two_arrivals_at_one_time_each_is_first_as_often() {
        let mut arrivals = LinkArrivals::new(2, Some(1));
        let is_first = |ns| {
            (0..2).for_each(|link| arrivals.set(link, Time::from_nanos(ns)));
            arrivals.first().1 == 0
        };
        let first = (0..10_000).map(|i| i * 240_000).map(is_first).filter(|first| *first).count();
        // 5,000 on average, tolerance four standard deviations of 50.
        assert!(first.abs_diff(5_000) < 200, "{first}");
    }

    proptest! {
        #[test]
        fn the_earliest_arrival_is_first_and_ties_go_to_the_lowest_link(
            links in 1usize..9,
            settings in prop::collection::vec((0u32..9, prop::option::of(0u64..20)), 1..100),
        ) {
            let mut arrivals = LinkArrivals::new(links, None);
            let mut expected = vec![Time::MAX; links];
            for (link, at) in settings {
                let (link, at) = (link % links as u32, at.map_or(Time::MAX, Time::from_nanos));
                arrivals.set(link, at);
                expected[link as usize] = at;
                let first = expected.iter().copied().zip(0..).min().expect("there is a link");
                if first.0 == Time::MAX {
                    prop_assert_eq!(arrivals.first().0, Time::MAX);
                } else {
                    prop_assert_eq!(arrivals.first(), first);
                }
            }
        }
    }
}

//! When the next packet comes out of each link.
//!
//! Most networks have a link or two. To look at all of a few costs less than to keep them in order.

use crate::event_queue::EventQueue;
use dumbbell_units::Time;

/// How many links are few.
const SCAN_MAX_LINKS: usize = 4;

/// The times of all links.
pub(crate) struct Arrivals {
    /// Of the first links; [`Time::MAX`] where there is none, or no packet.
    scanned: [Time; SCAN_MAX_LINKS],
    /// Of all links, if there are more.
    queue: Option<EventQueue>,
}

impl Arrivals {
    /// So many links, all of them empty.
    pub(crate) fn new(links: usize) -> Arrivals {
        Arrivals {
            scanned: [Time::MAX; SCAN_MAX_LINKS],
            queue: (links > SCAN_MAX_LINKS).then(|| EventQueue::new(links)),
        }
    }

    /// When the next packet comes out of a link, and of which: of several at one time, of the link with
    /// the lowest number. [`Time::MAX`] if all are empty.
    #[inline]
    pub(crate) fn first(&self) -> (Time, u32) {
        if let Some(queue) = &self.queue {
            return queue.first();
        }
        let [a, b, c, d] = self.scanned;
        let (ab, cd) = (if b < a { (b, 1) } else { (a, 0) }, if d < c { (d, 3) } else { (c, 2) });
        if cd.0 < ab.0 { cd } else { ab }
    }

    /// From now on the next packet comes out of a link at `at`; none if that is [`Time::MAX`].
    #[inline]
    pub(crate) fn set(&mut self, link: u32, at: Time) {
        match &mut self.queue {
            Some(queue) => queue.set(link, at),
            None => self.scanned[link as usize] = at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_arrival_is_first_and_ties_go_to_the_lowest_link(
            links in 1usize..9,
            settings in prop::collection::vec((0u32..9, prop::option::of(0u64..20)), 1..100),
        ) {
            let mut arrivals = Arrivals::new(links);
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

//! When each link delivers its next packet.
//!
//! Most networks have one or two links. Scanning a few is cheaper than keeping them ordered.

use crate::event_queue::EventQueue;
use dumbbell_units::Time;

/// Up to this many links are scanned; more are in an event queue.
const SCAN_MAX_LINKS: usize = 4;

/// The next arrivals of all links.
pub(crate) struct LinkArrivals {
    /// Times of the first links; [`Time::MAX`] for an empty or missing link.
    scanned: [Time; SCAN_MAX_LINKS],
    /// All links, if there are more than [`SCAN_MAX_LINKS`].
    queue: Option<EventQueue>,
}

impl LinkArrivals {
    /// The arrivals of `links` empty links.
    pub(crate) fn new(links: usize) -> LinkArrivals {
        LinkArrivals {
            scanned: [Time::MAX; SCAN_MAX_LINKS],
            queue: (links > SCAN_MAX_LINKS).then(|| EventQueue::new(links)),
        }
    }

    /// The next arrival: time and link. Ties go to the lowest link; [`Time::MAX`] if all are empty.
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
            let mut arrivals = LinkArrivals::new(links);
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

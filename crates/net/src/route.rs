//! Routes: the links that packets cross, in order.
//!
//! Ten thousand flows share a few routes, so equal routes are kept once, all of them in one table
//! in which a packet finds its next link from its route and the number of the hop.

use std::collections::BTreeMap;

/// A link's place in the list of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A route's place in [`Routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

/// All routes of a network.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// The routes' links one after the other, each route closed by [`END`].
    hops: Vec<u32>,
    known: BTreeMap<Vec<LinkId>, RouteId>,
}

const END: u32 = u32::MAX;

impl Routes {
    /// The most links that a route may have.
    pub const MAX_HOPS: usize = u8::MAX as usize;

    /// The route over these links. Without links, packets arrive as soon as they are sent.
    ///
    /// # Panics
    /// If there are more than [`Routes::MAX_HOPS`] links.
    pub fn add(&mut self, links: &[LinkId]) -> RouteId {
        assert!(links.len() <= Routes::MAX_HOPS, "a route has at most 255 links");
        if let Some(&route) = self.known.get(links) {
            return route;
        }
        let route = RouteId(self.hops.len() as u32);
        self.hops.extend(links.iter().map(|link| link.0));
        self.hops.push(END);
        self.known.insert(links.to_vec(), route);
        route
    }

    /// The link that is `hop` links down the route; `None` at its end.
    #[inline]
    pub fn hop(&self, route: RouteId, hop: u8) -> Option<LinkId> {
        let link = self.hops[route.0 as usize + usize::from(hop)];
        (link != END).then_some(LinkId(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_leads_over_its_links_and_ends() {
        let mut routes = Routes::default();
        let short = routes.add(&[LinkId(3)]);
        let long = routes.add(&[LinkId(1), LinkId(3), LinkId(1)]);
        let hops = |route| (0..).map_while(|hop| routes.hop(route, hop)).collect::<Vec<_>>();
        assert_eq!(hops(short), [LinkId(3)]);
        assert_eq!(hops(long), [LinkId(1), LinkId(3), LinkId(1)]);
    }

    #[test]
    fn equal_routes_are_kept_once() {
        let mut routes = Routes::default();
        let first = routes.add(&[LinkId(0), LinkId(1)]);
        assert_ne!(routes.add(&[LinkId(0)]), first);
        assert_eq!(routes.add(&[LinkId(0), LinkId(1)]), first);
    }

    #[test]
    fn a_route_without_links_is_at_its_end_from_the_start() {
        let mut routes = Routes::default();
        let nowhere = routes.add(&[]);
        assert_eq!(routes.hop(nowhere, 0), None);
    }
}

//! Routes: the links that packets cross, in order.
//!
//! Thousands of flows share a few routes. Equal routes are stored once, in one table that maps a
//! route and a hop number to a link.

use std::collections::BTreeMap;

/// Index of a link in the list of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Index of a route in [`Routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

/// All routes of a network.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// The links of all routes in sequence; each route ends with [`END`].
    hops: Vec<u32>,
    known: BTreeMap<Vec<LinkId>, RouteId>,
}

const END: u32 = u32::MAX;

impl Routes {
    /// The maximum number of links of a route.
    pub const MAX_HOPS: usize = u8::MAX as usize;

    /// Adds the route over these links, or returns the equal one. Over a route without links,
    /// packets arrive immediately.
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

    /// The links of a route, in order.
    pub fn links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        (0..=u8::MAX).map_while(move |hop| self.hop(route, hop))
    }

    /// Link number `hop` of the route; `None` after its last link.
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

//! Making algorithms of a user's own.

use crate::{Algorithm, CongestionControl, Init};
use std::fmt;
use std::sync::Arc;

/// Makes an algorithm of a user's own: a new one for every flow.
#[derive(Clone)]
pub struct Maker(Arc<Make>);

type Make = dyn Fn(&Init) -> Box<dyn CongestionControl + Send> + Send + Sync;

impl Maker {
    /// A maker that calls `make` for every flow.
    pub fn new<A: CongestionControl + Send + 'static>(
        make: impl Fn(&Init) -> A + Send + Sync + 'static,
    ) -> Maker {
        Maker(Arc::new(move |init| Box::new(make(init))))
    }

    /// The same where `make` chooses among several types.
    pub fn boxed(
        make: impl Fn(&Init) -> Box<dyn CongestionControl + Send> + Send + Sync + 'static,
    ) -> Maker {
        Maker(Arc::new(make))
    }

    /// An algorithm for a flow.
    pub fn make(&self, init: &Init) -> Algorithm {
        Algorithm::Custom((self.0)(init))
    }
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maker")
    }
}

/// Makers are equal if they are the same.
impl PartialEq for Maker {
    fn eq(&self, other: &Maker) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

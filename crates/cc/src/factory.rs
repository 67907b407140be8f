//! Making algorithms of a user's own.

use crate::{Algorithm, CongestionControl, ConnectionConfig};
use std::fmt;
use std::sync::Arc;

/// Makes an algorithm of a user's own: a new one for every flow.
#[derive(Clone)]
pub struct AlgorithmFactory(Arc<Make>);

type Make = dyn Fn(&ConnectionConfig) -> Box<dyn CongestionControl + Send> + Send + Sync;

impl AlgorithmFactory {
    /// A maker that calls `make` for every flow.
    pub fn new<A: CongestionControl + Send + 'static>(
        make: impl Fn(&ConnectionConfig) -> A + Send + Sync + 'static,
    ) -> AlgorithmFactory {
        AlgorithmFactory(Arc::new(move |init| Box::new(make(init))))
    }

    /// The same where `make` chooses among several types.
    pub fn boxed(
        make: impl Fn(&ConnectionConfig) -> Box<dyn CongestionControl + Send> + Send + Sync + 'static,
    ) -> AlgorithmFactory {
        AlgorithmFactory(Arc::new(make))
    }

    /// An algorithm for a flow.
    pub fn make(&self, init: &ConnectionConfig) -> Algorithm {
        Algorithm::Custom((self.0)(init))
    }
}

impl fmt::Debug for AlgorithmFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AlgorithmFactory")
    }
}

/// Makers are equal if they are the same.
impl PartialEq for AlgorithmFactory {
    fn eq(&self, other: &AlgorithmFactory) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

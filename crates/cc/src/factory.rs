//! Algorithms of other crates as [`Algorithm::Custom`].

use crate::{Algorithm, CongestionControl, ConnectionConfig};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

/// A user-defined algorithm behind a pointer.
///
/// Every [`CongestionControl`] that is `Clone + Debug + Send + Sync + 'static` is one. A clone is
/// independent: if the algorithm shares state behind a pointer, its `Clone` copies that state.
pub trait CustomAlgorithm: CongestionControl + fmt::Debug + Send + Sync {
    /// An independent copy.
    fn clone_box(&self) -> Box<dyn CustomAlgorithm>;
}

impl<A: CongestionControl + Clone + fmt::Debug + Send + Sync + 'static> CustomAlgorithm for A {
    fn clone_box(&self) -> Box<dyn CustomAlgorithm> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn CustomAlgorithm> {
    fn clone(&self) -> Box<dyn CustomAlgorithm> {
        (**self).clone_box()
    }
}

/// Makes a user-defined algorithm for every flow.
///
/// ```
/// use dumbbell_cc::{
///     Ack, AlgorithmFactory, CongestionControl, CongestionEvent, ConnectionConfig,
///     ControlParameters, Path,
/// };
/// use dumbbell_units::Time;
///
/// /// A window that never changes.
/// #[derive(Clone, Debug)]
/// struct Constant(f64);
///
/// impl CongestionControl for Constant {
///     fn on_ack(&mut self, _path: &Path, _ack: &Ack) {}
///     fn on_congestion(&mut self, _path: &Path, _event: &CongestionEvent) {}
///     fn control(&self) -> ControlParameters {
///         ControlParameters::new(self.0)
///     }
/// }
///
/// let factory = AlgorithmFactory::new(|config| Constant(config.initial_window));
/// let algorithm = factory.make(&ConnectionConfig::new(Time::ZERO, 1448));
/// assert_eq!(algorithm.control().cwnd, 10.0);
/// ```
#[derive(Clone)]
pub struct AlgorithmFactory(Arc<Make>);

type Make = dyn Fn(&ConnectionConfig) -> Box<dyn CustomAlgorithm> + Send + Sync;

impl AlgorithmFactory {
    /// A factory that calls `make` for every flow.
    pub fn new<A: CustomAlgorithm + 'static>(
        make: impl Fn(&ConnectionConfig) -> A + Send + Sync + 'static,
    ) -> AlgorithmFactory {
        AlgorithmFactory(Arc::new(move |config| Box::new(make(config))))
    }

    /// The same if `make` returns one of several types.
    pub fn boxed(
        make: impl Fn(&ConnectionConfig) -> Box<dyn CustomAlgorithm> + Send + Sync + 'static,
    ) -> AlgorithmFactory {
        AlgorithmFactory(Arc::new(make))
    }

    /// Makes the algorithm of one flow.
    pub fn make(&self, config: &ConnectionConfig) -> Algorithm {
        Algorithm::Custom((self.0)(config))
    }
}

impl fmt::Debug for AlgorithmFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AlgorithmFactory")
    }
}

/// Factories are equal if they are clones of one another.
impl PartialEq for AlgorithmFactory {
    fn eq(&self, other: &AlgorithmFactory) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

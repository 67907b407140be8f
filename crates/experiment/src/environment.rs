//! What an experiment refers to, outside of its file.

/// Reads traces, finds algorithms that are not built in, and says which transports there are.
///
/// The errors are sentences without the key and the file, which the caller adds.
pub trait Environment {
    /// The path of a trace that a file names, as [`trace`](Environment::trace) takes it.
    fn locate_trace(&self, path: &str) -> String {
        path.to_owned()
    }

    /// The text of an algorithm that is not built in, as [`algorithm`](Environment::algorithm)
    /// takes it.
    fn locate_algorithm(&self, cc: &str) -> String {
        cc.to_owned()
    }

    /// The text of a trace file.
    ///
    /// # Errors
    /// If it cannot be read.
    fn trace(&self, path: &str) -> Result<String, String>;

    /// The algorithm that `cc` names, such as `my_module:MyCC(gain=2)`.
    ///
    /// # Errors
    /// If it does not exist, is not an algorithm or has no such option.
    fn algorithm(&self, cc: &str) -> Result<CustomAlgorithm, String>;

    /// Whether flows can have this transport.
    ///
    /// # Errors
    /// If they cannot.
    fn transport(&self, _name: &str) -> Result<(), String> {
        Ok(())
    }
}

/// An algorithm that is not built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomAlgorithm {
    /// Its name, as the key `sources` has it.
    pub name: String,
    /// SHA-256 of its source.
    pub digest: String,
}

/// An environment without files and without further algorithms.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEnvironment;

impl Environment for NoEnvironment {
    fn trace(&self, path: &str) -> Result<String, String> {
        Err(format!("\"{path}\" cannot be read: there are no files here"))
    }

    fn algorithm(&self, cc: &str) -> Result<CustomAlgorithm, String> {
        Err(format!("\"{cc}\" cannot be loaded here; write a built-in algorithm"))
    }
}

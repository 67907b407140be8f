//! What a user may change of BBRv2, F-BBRv2 and BBRv3.

use super::super::version::Version;
use super::BoundedBbr;
use crate::{ConfigError, ConnectionConfig, Options};
use dumbbell_units::Span;

const SHARE: &str = "a number from 0 to 0.99";
const GAIN: &str = "a number from 0.05 to 1";
const SECONDS: &str = "seconds from 0.1 to 1000";

impl BoundedBbr {
    /// A version with options: `loss_thresh`, `beta`, `headroom` (shares), `ecn` (on or off),
    /// `drain_gain`, `down_gain`, `probe_rtt_interval` and `probe_wait` (s); F-BBRv2 also with
    /// `threshold` and `cruise_gain`.
    ///
    /// # Errors
    /// If an option's value is not one it can have.
    pub fn from_options(
        version: Version,
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<BoundedBbr, ConfigError> {
        let Version { mut params, mut caution, mut probing, mut assertion } = version;
        for (key, value) in [
            ("loss_thresh", &mut caution.loss_thresh),
            ("beta", &mut caution.beta),
            ("headroom", &mut caution.headroom),
        ] {
            *value = options.number(key, *value, 0.0..=0.99, SHARE)?;
        }
        caution.ecn = options.switch("ecn", caution.ecn)?;
        for (key, value) in [
            ("drain_gain", &mut params.drain_pacing_gain),
            ("down_gain", &mut probing.down_pacing_gain),
        ] {
            *value = options.number(key, *value, 0.05..=1.0, GAIN)?;
        }
        for (key, value) in [
            ("probe_rtt_interval", &mut params.probe_rtt_interval),
            ("probe_wait", &mut probing.wait),
        ] {
            let number = options.number(key, value.as_secs_f64(), 0.1..=1000.0, SECONDS)?;
            *value = Span::from_secs_f64(number);
        }
        if let Some(assertion) = &mut assertion {
            for (key, value) in [
                ("threshold", &mut assertion.threshold),
                ("cruise_gain", &mut assertion.cruise_pacing_gain),
            ] {
                *value = options.number(key, *value, 1.0..=10.0, "a number from 1 to 10")?;
            }
        }
        Ok(BoundedBbr::new(Version { params, caution, probing, assertion }, init))
    }
}

//! The variables of the BBRs of `dumbbell bpf`, read from the kernel while they run.
//!
//! Their state is in the socket's storage (BPF_MAP_TYPE_SK_STORAGE), which user space can look up by
//! the socket's descriptor. BTF tells where a variable is. Names and units are those of the
//! simulator's `inspect`: packets, seconds, bytes/s.

use crate::btf::{self, Field};
use crate::sys::{self, BpfMap};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;

/// Gains in the programs are in units of 2^-16.
const GAIN: f64 = 65_536.0;
/// The programs' value of a window or a time that is not set.
const NONE: u64 = u32::MAX as u64;

/// A connection's state in the kernel.
pub(crate) struct BpfState {
    map: BpfMap,
    fields: Vec<Field>,
    /// Buffer for a copy of the state.
    value: Vec<u8>,
}

impl BpfState {
    /// Shows the variables of a socket's algorithm; none before and after the connection, and none
    /// without the privilege to read them (CAP_BPF). `known` keeps where they are.
    pub(crate) fn inspect(
        known: &mut Option<BpfState>,
        socket: impl AsFd,
        show: &mut dyn FnMut(&'static str, f64),
    ) -> io::Result<()> {
        let found = match known {
            Some(state) => state.map.lookup(&socket, &mut state.value),
            None => BpfState::of(&socket).map(|found| {
                *known = found;
                known.is_some()
            }),
        };
        let is_there = match found {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => false,
            found => found?,
        };
        if let Some(state) = known.as_ref().filter(|_| is_there) {
            let named = state.fields.iter();
            let named = named.map(|field| (&*field.name, field.value(&state.value))).collect();
            variables(&named, show);
        }
        Ok(())
    }

    /// The state of a socket; `None` if no eBPF program has any for it.
    fn of(socket: impl AsFd) -> io::Result<Option<BpfState>> {
        for map in sys::bpf_maps() {
            let map = map?;
            if !map.is_socket_storage() {
                continue;
            }
            let mut value = vec![0; map.value_size()];
            if !map.lookup(&socket, &mut value)? {
                continue;
            }
            if let Some(fields) = btf::fields(&map.btf()?, map.value_type()) {
                return Ok(Some(BpfState { map, fields, value }));
            }
        }
        Ok(None)
    }
}

/// The variables of a `struct bbr` of crates/bpf: those that all versions have, then its version's.
fn variables(of: &HashMap<&str, u64>, show: &mut dyn FnMut(&'static str, f64)) -> Option<()> {
    let get = |name: &str| of.get(name).copied();
    let number = |name: &str| get(name).map(|value| value as f64);
    show("state", number("common.state")?);
    show("round_count", number("common.round")?);
    show("pacing_gain", number("common.pacing_gain")? / GAIN);
    show("cwnd_gain", number("common.cwnd_gain")? / GAIN);
    show("full_bw_reached", number("common.full_bw_reached")?);
    let min_rtt = get("common.min_rtt")?;
    show("min_rtt", if min_rtt == NONE { 0.0 } else { min_rtt as f64 / 1e6 });
    let extra_acked = number("common.extra_acked[0]")?.max(number("common.extra_acked[1]")?);
    show("extra_acked", extra_acked);
    if let Some(max_bw) = number("version.best[0].bw") {
        let lt_use_bw = number("version.lt_use_bw")?;
        show("max_bw", max_bw);
        show("bw", if lt_use_bw > 0.0 { number("version.lt_bw")? } else { max_bw });
        show("lt_use_bw", lt_use_bw);
        return Some(());
    }
    let [last, current] = ["version.max_bw_previous_cycle", "version.max_bw_current_cycle"];
    let max_bw = number(last)?.max(number(current)?);
    let bound = |name: &str, none| {
        get(name).map(|value| if value == none { f64::INFINITY } else { value as f64 })
    };
    let bw_shortterm = bound("version.bounds.bw_shortterm", u64::MAX)?;
    show("max_bw", max_bw);
    show("bw", max_bw.min(bw_shortterm));
    show("bw_shortterm", bw_shortterm);
    show("inflight_longterm", bound("version.bounds.inflight_longterm", NONE)?);
    show("inflight_shortterm", bound("version.bounds.inflight_shortterm", NONE)?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: [(&str, u64); 8] = [
        ("common.state", 4),
        ("common.round", 17),
        ("common.pacing_gain", 5 << 14),
        ("common.cwnd_gain", 2 << 16),
        ("common.full_bw_reached", 1),
        ("common.min_rtt", 40_000),
        ("common.extra_acked[0]", 3),
        ("common.extra_acked[1]", 9),
    ];

    fn shown(version: &[(&'static str, u64)]) -> HashMap<&'static str, f64> {
        let mut found = HashMap::new();
        let all = COMMON.iter().chain(version).copied().collect();
        variables(&all, &mut |name, value| assert!(found.insert(name, value).is_none()));
        found
    }

    #[test]
    fn variables_have_the_units_and_names_of_the_simulator() {
        let found = shown(&[
            ("version.max_bw_previous_cycle", 6_000_000),
            ("version.max_bw_current_cycle", 5_000_000),
            ("version.bounds.bw_shortterm", 4_000_000),
            ("version.bounds.inflight_longterm", NONE),
            ("version.bounds.inflight_shortterm", 80),
        ]);
        let expected = [
            ("state", 4.0),
            ("round_count", 17.0),
            ("pacing_gain", 1.25),
            ("cwnd_gain", 2.0),
            ("full_bw_reached", 1.0),
            ("min_rtt", 0.04),
            ("extra_acked", 9.0),
            ("max_bw", 6e6),
            ("bw", 4e6),
            ("bw_shortterm", 4e6),
            ("inflight_longterm", f64::INFINITY),
            ("inflight_shortterm", 80.0),
        ];
        assert_eq!(found, HashMap::from(expected));
    }

    #[test]
    fn bw_of_bbrv1_is_the_long_term_rate_while_a_policer_is_seen() {
        let one = [("version.best[0].bw", 100), ("version.lt_bw", 60)];
        let used = |lt_use_bw| shown(&[one[0], one[1], ("version.lt_use_bw", lt_use_bw)])["bw"];
        assert_eq!((used(0), used(1)), (100.0, 60.0));
    }
}

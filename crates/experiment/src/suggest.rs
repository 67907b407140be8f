//! "Did you mean": the known name that is closest to an unknown one.

/// The similarity, from 0 to 1, from which a name is suggested.
const MIN_SIMILARITY: f64 = 0.6;

/// The known name that is closest to `name`, if one is close. Names that differ in capitals only
/// come first.
pub(crate) fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_lowercase();
    let similarity = |other: &str| match other.to_lowercase() == folded {
        true => 2.0,
        false => strsim::normalized_damerau_levenshtein(&folded, &other.to_lowercase()),
    };
    let mut best: Option<(f64, &str)> = None;
    for other in known {
        let similarity = similarity(other);
        if similarity >= MIN_SIMILARITY && best.is_none_or(|(most, _)| similarity > most) {
            best = Some((similarity, other));
        }
    }
    best.map(|(_, name)| name)
}

/// Other words for units and keys.
const SYNONYMS: [(&[&str], &str); 12] = [
    (&["usec", "usecs"], "us"),
    (&["msec", "msecs"], "ms"),
    (&["sec", "secs", "second", "seconds"], "s"),
    (&["m", "minute", "minutes"], "min"),
    (&["hour", "hours"], "h"),
    (&["pkt", "pkts"], "packets"),
    (&["latency", "propagation"], "delay"),
    (&["bandwidth", "bandwith", "capacity", "speed"], "rate"),
    (&["buffer", "buffer_size", "limit"], "queue"),
    (&["qdisc", "queue_discipline"], "aqm"),
    (&["begin", "start_time"], "start"),
    (&["algorithm", "congestion_control", "tcp"], "cc"),
];

/// The known name that another word stands for.
fn synonym<'a>(name: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (_, meant) = SYNONYMS.iter().find(|(words, _)| words.contains(&name))?;
    known.find(|known| known == meant)
}

/// ` (did you mean "..."?)`, or nothing if no name is close.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    synonym(name, known.iter().copied())
        .or_else(|| closest(name, known))
        .map_or(String::new(), |close| format!(" (did you mean \"{close}\"?)"))
}

/// The sentence that says that `name` is not one of the known names of a `kind`.
pub(crate) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let hint = did_you_mean(name, known.iter().copied());
    format!("no {kind} is called \"{name}\"{hint}; choose from {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_name_is_suggested_and_a_distant_one_is_not() {
        assert_eq!(did_you_mean("sampel", ["seeds", "sample"]), " (did you mean \"sample\"?)");
        assert_eq!(did_you_mean("moon", ["bottleneck"]), "");
        assert_eq!(did_you_mean("latency", ["jitter", "delay"]), " (did you mean \"delay\"?)");
        assert_eq!(did_you_mean("latency", ["late"]), "", "only if there is such a key");
        assert_eq!(closest("ms", ["MS", "m"]), Some("MS"));
        assert_eq!(closest("BBRv3", ["bbr", "bbr2", "bbr3"]), Some("bbr3"));
    }
}

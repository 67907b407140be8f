use super::*;
use crate::{Experiment, NoEnvironment};
use serde_json::json;

const SECOND: u64 = 1_000_000_000;

/// What a template stands for in a run of so many seconds.
fn path_of(text: &str, seconds: u64) -> Path {
    path(&resolve(&json!(text)).expect(text), seconds * SECOND).expect(text)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Times in ms in which nothing passes.
fn pauses(rates: &[(u64, u64)]) -> Vec<f64> {
    let pauses = rates.windows(2).filter(|pair| pair[0].1 == 0);
    pauses.map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e6).collect()
}

#[test]
fn handovers_of_leo_are_those_of_a_published_starlink_trace() {
    // LeoReplayer's example, read at 1 ms: when nothing passes for long, and for how long (ms).
    let starts: [u64; 8] = [8687, 23691, 38695, 53691, 68692, 83692, 98698, 113699];
    let published = [59.0, 69.0, 82.0, 68.0, 95.0, 135.0, 83.0, 93.0];
    assert!(starts.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(15_000) < 10));
    // Mean rates of its slots, Mbit/s.
    let slots = [58.8, 57.6, 37.2, 43.0, 49.0, 46.6, 44.1, 48.8, 70.6];

    let leo = path_of("leo", 15_000);
    let times: Vec<u64> = leo.rates.iter().filter(|step| step.1 == 0).map(|step| step.0).collect();
    assert!(times.iter().zip(1..).all(|(&at, slot)| at == 15 * SECOND * slot));
    let pauses = pauses(&leo.rates);
    assert_eq!(pauses.len(), 999);
    // Within two standard errors of the trace's means.
    let error = deviation(&published) / 8.0_f64.sqrt();
    assert!((mean(&pauses) - mean(&published)).abs() < 2.0 * error, "{}", mean(&pauses));
    let rates: Vec<f64> =
        leo.rates.iter().filter(|step| step.1 > 0).map(|step| step.1 as f64).collect();
    let (ours, theirs) = (deviation(&rates) / mean(&rates), deviation(&slots) / mean(&slots));
    assert!((ours - theirs).abs() < 0.02, "{ours:.3} {theirs:.3}");
    assert!((mean(&rates) / 100e6 - 1.0).abs() < 0.02);
}

#[test]
fn delays_of_leo_are_those_of_a_satellite_at_550_km() {
    // Slant range at an elevation: a side of the triangle with the centre of the earth.
    let range = |degrees: f64| {
        let (radius, height) = (6371.0, 550.0);
        let sine = degrees.to_radians().sin();
        let square: f64 = (radius * sine).powi(2) + 2.0 * radius * height + height * height;
        square.sqrt() - radius * sine
    };
    // Up and down, there and back.
    let rtt = |degrees| 4.0 * range(degrees) / 299.792;
    let leo = path_of("leo", 15_000);
    let extra: Vec<f64> =
        leo.reroutes.iter().map(|step| (step.1 - leo.delay) as f64 / 1e6).collect();
    let max = extra.iter().copied().fold(0.0, f64::max);
    assert!((max - (rtt(25.0) - rtt(90.0))).abs() < 0.5, "{max}");
}

#[test]
fn both_directions_of_leo_have_their_handovers_at_once() {
    let (down, up) = (path_of("leo", 600), path_of("leo(rate=10 Mbit/s, up=on)", 600));
    let times = |path: &Path| path.rates.iter().map(|step| step.0).collect::<Vec<_>>();
    assert_eq!(times(&down), times(&up));
    assert!(up.reroutes.is_empty() && down.reroutes.len() == 40);
    for (down, up) in down.rates.iter().zip(&up.rates) {
        assert!((down.1 / 10).abs_diff(up.1) <= 1000, "rates change together");
    }
}

#[test]
fn suspensions_of_wifi_are_those_of_picoquics_trace() {
    // Issue 1697: 19 bunches within 3.15 s, 166 ms apart on average; suspensions of 100 to 200 ms.
    let wifi = path_of("wifi(every=100 s, period=300 s)", 600);
    let pauses = pauses(&wifi.rates);
    assert!(pauses.iter().all(|&ms| (100.0..=200.0).contains(&ms)));
    let back: Vec<u64> =
        wifi.rates[1..].iter().filter(|step| step.1 > 0).map(|step| step.0).collect();
    let apart: Vec<f64> = back.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let near: Vec<f64> = apart.into_iter().filter(|&ms| ms < 1000.0).collect();
    assert!(near.len() > 1000 && (mean(&near) - 166.0).abs() < 3.0, "{}", mean(&near));
    assert!((3150.0 / mean(&near) - 19.0).abs() < 0.5);
}

#[test]
fn periods_of_suspensions_come_as_often_as_asked() {
    let wifi = path_of("wifi(every=20 s, period=1 s)", 21_000);
    let starts = wifi.rates.iter().filter(|step| step.1 == 0).map(|step| step.0);
    let starts: Vec<u64> = starts.collect();
    let periods = 1 + starts.windows(2).filter(|pair| pair[1] - pair[0] > SECOND / 2).count();
    // Expected: 21,000 s / 21 s, with a standard deviation of sqrt(1000) * 20/21.
    assert!(periods.abs_diff(1000) < 120, "{periods}");
    assert_eq!(path_of("wifi(every=off)", 60).rate, Some(144_400_000));
}

#[test]
fn the_rate_of_lte_does_the_brownian_motion_of_sprout() {
    // Numbers of packets N in seconds that follow each other, by a Poisson process whose rate does
    // a Brownian motion: Var(N' - N) = 2 E(N) + 2/3 sigma^2, far from the bounds.
    let mut squares = Vec::new();
    let mut counts = Vec::new();
    for seed in 0..40 {
        let lte = path_of(&format!("lte(rate=120 Mbit/s, seed={seed})"), 300);
        let mut seconds = vec![0.0_f64; 50];
        for ms in &lte.trace[..lte.trace.len() - 1] {
            seconds[*ms as usize / 1000] += 1.0;
        }
        squares.extend(seconds.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)));
        counts.extend(seconds);
    }
    let expected = 2.0 * mean(&counts) + 2.0 / 3.0 * 200.0 * 200.0;
    let ratio = mean(&squares) / expected;
    // The standard error of 1960 squares, each with its neighbour, is 4 %.
    assert!((ratio - 1.0).abs() < 0.15, "{ratio}");
}

#[test]
fn times_of_lte_never_decrease_whatever_the_duration_and_the_rate() {
    for (text, milliseconds) in [
        ("lte", 10_250),
        ("lte", 10_259),
        ("lte(rate=110 Mbit/s)", 60_000),
        ("lte(rate=70 Mbit/s)", 90_000),
    ] {
        let lte = resolve(&json!(text)).expect(text);
        let trace = path(&lte, milliseconds * MS).expect(text).trace;
        assert!(trace.is_sorted(), "{text} for {milliseconds} ms");
    }
}

/// Times without a packet beyond 500 ms, ms.
fn silences(outage: &str) -> Vec<f64> {
    let gaps = (0..80).flat_map(|seed| {
        let trace = path_of(&format!("lte(outage={outage}, seed={seed})"), 300).trace;
        trace.windows(2).map(|pair| f64::from(pair[1] - pair[0])).collect::<Vec<_>>()
    });
    gaps.filter(|&ms| ms > 500.0).map(|ms| ms - 500.0).collect()
}

#[test]
fn outages_of_lte_are_exponential_with_the_mean_that_is_asked() {
    // A silence is one outage, or several if the rate falls to 0 again before a packet. Their number
    // is geometric and does not depend on how long they last, and a geometric sum of exponential
    // times is exponential again: mean and deviation are equal and grow as the mean of an outage.
    let (short, long) = (silences("1 s"), silences("3 s"));
    assert!(short.len() > 300 && long.len() > 300, "{} {}", short.len(), long.len());
    assert!(mean(&short) > 1000.0, "{}", mean(&short));
    for silences in [&short, &long] {
        let ratio = deviation(silences) / mean(silences);
        assert!((ratio - 1.0).abs() < 0.15, "{ratio}");
    }
    let ratio = mean(&long) / mean(&short);
    assert!((ratio - 3.0).abs() < 0.45, "{ratio}");
}

#[test]
fn blockages_of_5g_last_as_measured_and_leave_what_shannon_says() {
    let link = path_of("5g", 20_000);
    let blocked: Vec<f64> = link
        .rates
        .windows(2)
        .filter(|pair| pair[0].1 < 400_000_000)
        .map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e6)
        .collect();
    // Mean fade of 299 ms; the standard error of 3800 exponential numbers is 1.6 %.
    assert!((mean(&blocked) / 299.0 - 1.0).abs() < 0.065, "{}", mean(&blocked));
    let capacity = |decibel: f64| (1.0 + 10_f64.powf(decibel / 10.0)).log2();
    let left = link.rates[1].1 as f64 / 400e6;
    assert!((left - capacity(20.0 - 15.8) / capacity(20.0)).abs() < 0.005, "{left}");
}

const FILE: &str = "duration = \"60 s\"\n[[link]]\nname = \"a\"\ntemplate = \"TEMPLATE\"\nMORE\n\
                    [[flow]]\ncc = \"cubic\"\n";

fn read(template: &str, more: &str) -> Experiment {
    let text = FILE.replace("TEMPLATE", template).replace("MORE", more);
    Experiment::from_toml(&text, "a.toml", &[] as &[&str]).expect("a valid file")
}

#[test]
fn resolving_writes_plain_keys_in_place_of_a_template() {
    let resolved = read("policer(burst=50 kB)", "").resolve(&NoEnvironment).expect("valid");
    let link = &resolved.links[0];
    assert_eq!(link.template, None);
    let plain = [&link.rate, &link.burst, &link.queue].map(|key| key.as_deref().unwrap_or(""));
    assert_eq!(plain, ["1.5 Mbit/s", "50 kB", "none"]);
    assert_eq!((link.delay.as_str(), resolved.flows[0].rtt.as_deref()), ("20 ms", Some("40 ms")));
    assert_eq!(resolved.resolve(&NoEnvironment).as_ref(), Ok(&resolved), "twice changes nothing");
}

#[test]
fn every_template_resolves_to_a_valid_scenario() {
    for kind in TEMPLATES {
        let resolved = read(kind.name, "").resolve(&NoEnvironment).expect(kind.name);
        let scenario = resolved.scenario(1);
        scenario.check().expect(kind.name);
        let again = read(kind.name, "").resolve(&NoEnvironment).expect(kind.name);
        assert_eq!(resolved.to_toml(true), again.to_toml(true), "the same seed, the same bytes");
        let text = resolved.to_toml(true);
        let plain = Experiment::from_toml(&text, "", &[] as &[&str]).expect(kind.name);
        assert_eq!(plain.resolve(&NoEnvironment).expect(kind.name).scenario(1), scenario);
    }
}

#[test]
fn another_seed_is_another_path() {
    for name in ["leo", "wifi", "lte", "5g"] {
        assert_ne!(path_of(name, 60), path_of(&format!("{name}(seed=2)"), 60), "{name}");
    }
}

#[test]
fn keys_beside_a_template_take_precedence() {
    let more = "rate = \"7 Mbit/s\"\nqueue = \"30 packets\"\nloss = 0.01\naqm = \"codel\"";
    let resolved = read("leo", more).resolve(&NoEnvironment).expect("valid");
    let link = &resolved.links[0];
    assert_eq!((link.rate.as_deref(), &link.rates), (Some("7 Mbit/s"), &None));
    assert_eq!((link.queue.as_deref(), &link.loss), (Some("30 packets"), &json!(0.01)));
    assert!(link.reroutes.is_some(), "what is not given is the template's");
    let resolved = read("cable", "delay = \"3 ms\"").resolve(&NoEnvironment).expect("valid");
    assert_eq!(resolved.links[0].delay, "3 ms");
}

#[test]
fn a_policer_with_another_rate_keeps_its_token_bucket() {
    let link = |more| read("policer", more).resolve(&NoEnvironment).map(|of| of.links[0].clone());
    let faster = link("rate = \"5 Mbit/s\"").expect("valid");
    let plain =
        [&faster.rate, &faster.burst, &faster.queue].map(|key| key.as_deref().unwrap_or(""));
    assert_eq!(plain, ["5 Mbit/s", "100 kB", "none"]);
    let error = link("rates = [[\"0 s\", \"5 Mbit/s\"]]").expect_err("no bucket").to_string();
    assert!(error.contains("link.a.burst: \"100 kB\" fills at the link's rate"), "{error}");
}

#[test]
fn errors_say_what_is_valid() {
    for (template, part) in [
        ("lio", "is not a template of a link (did you mean \"leo\"?)"),
        ("leo(rat=1 Mbit/s)", "leo has no option \"rat\" (did you mean \"rate\"?)"),
        ("leo(slot=0 s)", "leo: slot: \"0 s\" is nothing"),
    ] {
        let text = FILE.replace("TEMPLATE", template).replace("MORE", "");
        let error = Experiment::from_toml(&text, "a.toml", &[] as &[&str]).expect_err(template);
        let error = error.to_string();
        assert!(error.starts_with("a.toml:4: link.a.template: "), "{error}");
        assert!(error.contains(part), "{error}");
    }
    for (template, part) in [
        (
            "leo(slot=10 us, outage=off)",
            "1,000,000; let it change less often, or the run be shorter",
        ),
        ("leo(outage=5001 ms)", "outage is more than a third of slot"),
        ("5g(every=1 us, blocked=1 us, rate=1 Mbit/s)", ""),
    ] {
        let resolved = read(template, "").resolve(&NoEnvironment);
        match part {
            "" => drop(resolved.expect("at most one change in a millisecond")),
            part => {
                let error = resolved.expect_err(template).to_string();
                assert!(error.starts_with("a.toml:4: link.a.template: "), "{error}");
                assert!(error.contains(part), "{error}");
            }
        }
    }
}

#[test]
fn a_medium_needs_a_rate_and_a_queue() {
    let error = read("policer", "medium = \"csma\"").resolve(&NoEnvironment).expect_err("no queue");
    assert!(error.to_string().contains("is of a link with a rate or rates and a queue"), "{error}");
}

use super::*;
use crate::test_path::{Link, TestPath, init};
use crate::{Algorithm, CongestionControl};
use dumbbell_units::Span;

fn flow(name: &str, link: Link) -> TestPath<Algorithm> {
    TestPath::new(Algorithm::parse(name, &init(1)).expect("built in"), link)
}

#[test]
fn look() {
    for (mbit, rtt, bdp) in [(50.0, 30, 1.0), (50.0, 30, 0.4), (20.0, 40, 2.0)] {
        let link = Link::new(mbit, rtt, 1.0);
        let link = Link { queue: bdp * link.bdp(), ..link };
        for mode in ["primary", "scavenger"] {
            let name = format!("proteus(mode={mode})");
            let mut one = flow(&name, link);
            one.run_ms(20_000);
            let before = one.path.delivered;
            let (mut sum, mut n) = (0.0, 0.0);
            one.run(Span::from_secs(40), |f| (sum, n) = (sum + f.queued(), n + 1.0));
            let share = (one.path.delivered - before) as f64 / 40.0 * link.rtt.as_secs_f64() / link.bdp();
            println!("{mbit} {bdp} {mode}: alone {share:.3}, queue {:.2} BDP", sum / n / link.bdp());
            for other in ["cubic", "bbr", "copa", "proteus(mode=primary)", "proteus(mode=scavenger)"] {
                let (mut one, mut two) = (flow(&name, link), flow(other, link));
                one.sending = false;
                one.run_beside(&mut two, Span::from_secs(5));
                one.sending = true;
                one.run_beside(&mut two, Span::from_secs(55));
                let before = (one.path.delivered, two.path.delivered);
                one.run_beside(&mut two, Span::from_secs(60));
                let share = |delivered: u64| delivered as f64 / 60.0 * link.rtt.as_secs_f64() / link.bdp();
                println!("  {other}: {:.3} {:.3}", share(one.path.delivered - before.0), share(two.path.delivered - before.1));
            }
        }
    }
}

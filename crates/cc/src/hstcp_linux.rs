//! HighSpeed TCP in Linux's arithmetic (`arithmetic=linux`): Linux 6.18's `tcp_highspeed.c`.
//!
//! The functions `a(w)` and `b(w)` are those of [`crate::hstcp`], from the table of RFC 3649, appendix
//! B. A row applies to the windows above the row before. The window is in whole packets. Each
//! acknowledgement adds `a(w)` to a count, however many packets it is for; the window grows by a
//! packet when the count has reached it. So with delayed acknowledgements it grows half as fast as
//! in the RFC.

use crate::{Ack, CongestionEvent, Metric, Path, WindowRule};

/// `hstcp_aimd_vals`: up to which window row `i` applies, and 256 `b` in it; its `a` is `i + 1`.
#[rustfmt::skip]
const TABLE: [(u64, u64); 72] = [
    (38, 128), (118, 112), (221, 104), (347, 98), (495, 93), (663, 89), (851, 86), (1058, 83),
    (1284, 81), (1529, 78), (1793, 76), (2076, 74), (2378, 72), (2699, 71), (3039, 69),
    (3399, 68), (3778, 66), (4177, 65), (4596, 64), (5036, 62), (5497, 61), (5979, 60),
    (6483, 59), (7009, 58), (7558, 57), (8130, 56), (8726, 55), (9346, 54), (9991, 53),
    (10661, 52), (11358, 52), (12082, 51), (12834, 50), (13614, 49), (14424, 48), (15265, 48),
    (16137, 47), (17042, 46), (17981, 45), (18955, 45), (19965, 44), (21013, 43), (22101, 43),
    (23230, 42), (24402, 41), (25618, 41), (26881, 40), (28193, 39), (29557, 39), (30975, 38),
    (32450, 38), (33986, 37), (35586, 36), (37253, 36), (38992, 35), (40808, 35), (42707, 34),
    (44694, 33), (46776, 33), (48961, 32), (51258, 32), (53677, 31), (56230, 30), (58932, 30),
    (61799, 29), (64851, 28), (68113, 28), (71617, 27), (75401, 26), (79517, 26), (84035, 25),
    (89053, 24),
];

/// HighSpeed TCP's rule in Linux's arithmetic.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighSpeedLinux {
    /// The row of the last growth (Linux's `ai`).
    row: usize,
    /// What acknowledgements have added (Linux's `snd_cwnd_cnt`).
    count: u64,
}

impl WindowRule for HighSpeedLinux {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, ack: &Ack) -> f64 {
        if acked < f64::from(ack.acked) {
            return 0.0; // the acknowledgement was slow start's
        }
        let cwnd = cwnd as u64;
        while self.row + 1 < TABLE.len() && cwnd > TABLE[self.row].0 {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= TABLE[self.row - 1].0 {
            self.row -= 1;
        }
        self.count += self.row as u64 + 1;
        if self.count < cwnd {
            return 0.0;
        }
        self.count -= cwnd;
        1.0
    }

    /// `hstcp_ssthresh`.
    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.count = 0;
        let cwnd = cwnd as u64;
        (cwnd - cwnd * TABLE[self.row].1 / 256) as f64
    }

    fn on_timeout(&mut self) {
        self.count = 0;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "a", value: (self.row + 1) as f64 });
        show(Metric { name: "b", value: TABLE[self.row].1 as f64 / 256.0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hstcp::{a, b};
    use dumbbell_units::Time;

    /// The program in appendix B writes a row whenever `a` is more than one above the row before.
    #[test]
    fn the_table_is_what_the_program_of_appendix_b_writes() {
        let mut rows = vec![(38, 128)];
        let mut last = 1.0;
        for w in 39..94_717_u32 {
            let now = a(f64::from(w));
            if now > last + 1.0 {
                rows.push((u64::from(w), (256.0 * b(f64::from(w))) as u64));
                last = now;
            }
        }
        assert_eq!(rows, TABLE);
    }

    fn acknowledge(rule: &mut HighSpeedLinux, cwnd: f64, acked: u32) -> f64 {
        let path = Path::new(1448, Time::ZERO);
        rule.increase(cwnd, f64::from(acked), &path, &Ack::new(acked))
    }

    /// hstcp_cong_avoid: a count of a(w) for each acknowledgement.
    #[test]
    fn growth_counts_acknowledgements_by_the_table() {
        for (cwnd, a) in [(38.0, 1.0), (39.0, 2.0), (118.0, 2.0), (119.0, 3.0), (9e4, 72.0)] {
            let mut rule = HighSpeedLinux::default();
            let grown: f64 = (0..1000).map(|_| acknowledge(&mut rule, cwnd, 2)).sum();
            assert_eq!(grown, f64::floor(1000.0 * a / cwnd), "{cwnd}");
        }
    }

    /// hstcp_ssthresh takes `b` from the row of the last growth.
    #[test]
    fn congestion_takes_whole_packets_and_empties_the_count() {
        let (path, loss) = (Path::new(1448, Time::ZERO), CongestionEvent::loss());
        let mut rule = HighSpeedLinux::default();
        acknowledge(&mut rule, 1000.0, 1);
        assert_eq!(rule.decrease(1001.0, &path, &loss), 677.0);
        assert_eq!(rule.count, 0);
        assert_eq!(HighSpeedLinux::default().decrease(1001.0, &path, &loss), 501.0);
    }
}

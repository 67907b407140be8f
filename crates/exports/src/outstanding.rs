//! What was sent and is not acknowledged.

use std::collections::BTreeMap;

/// Transmissions by their first byte.
#[derive(Default)]
pub(crate) struct Outstanding(BTreeMap<i64, Transmission>);

struct Transmission {
    end: i64,
    packet_number: u64,
}

impl Outstanding {
    /// Adds a transmission. Returns the packet number of the one that it repeats, if it does.
    pub(crate) fn add(&mut self, first: i64, length: u16, packet_number: u64) -> Option<u64> {
        let sent = Transmission { end: first + i64::from(length), packet_number };
        self.0.insert(first, sent).map(|before| before.packet_number)
    }

    /// Removes what bytes from `start` to before `end` acknowledge; returns the packet numbers.
    pub(crate) fn acknowledge(&mut self, start: i64, end: i64) -> Vec<u64> {
        let covered = self.0.range(start..).take_while(|(_, sent)| sent.end <= end);
        let firsts: Vec<i64> = covered.map(|(&first, _)| first).collect();
        firsts.iter().filter_map(|first| Some(self.0.remove(first)?.packet_number)).collect()
    }
}

/// Numbers in ascending order as ranges, both ends included: 3, 4, 5, 9 are 3 to 5 and 9 to 9.
pub(crate) fn ranges(numbers: &[u64]) -> Vec<[u64; 2]> {
    let runs = numbers.chunk_by(|before, after| before + 1 == *after);
    runs.map(|run| [run[0], run[run.len() - 1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_are_one_range() {
        assert_eq!(ranges(&[3, 4, 5, 9]), [[3, 5], [9, 9]]);
        assert_eq!(ranges(&[]), [[0; 2]; 0]);
    }

    #[test]
    fn a_packet_is_acknowledged_once_all_of_it_is() {
        let mut outstanding = Outstanding::default();
        for number in 0..4 {
            assert_eq!(outstanding.add(number * 10, 10, number as u64), None);
        }
        assert_eq!(outstanding.acknowledge(20, 30), [2]);
        assert_eq!(outstanding.add(10, 10, 4), Some(1), "packet 4 repeats packet 1");
        assert_eq!(outstanding.acknowledge(0, 39), [0, 4]);
        assert_eq!(outstanding.acknowledge(0, 40), [3]);
    }
}

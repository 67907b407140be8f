//! The blocks of the SACK option (RFC 2018), as Linux's receiver keeps them: the block that changed
//! last comes first (`tcp_sack_new_ofo_skb`), blocks that meet are merged
//! (`tcp_sack_maybe_coalesce`), and blocks that are now in order are removed (`tcp_sack_remove`).

/// Maximum number of blocks (`TCP_NUM_SACKS`). The oldest block beyond it is never reported again.
const NUM_SACKS: usize = 4;

/// Blocks `start..end` of packets that arrived out of order, the last changed first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackBlocks {
    blocks: [(u32, u32); NUM_SACKS],
    count: u8,
}

impl SackBlocks {
    /// The blocks, the last changed first.
    #[inline]
    pub(crate) fn newest_first(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Index of the block that a packet belongs to or extends; the number of blocks if it begins a new
    /// one.
    #[inline]
    pub(crate) fn index_of(&self, number: u32) -> usize {
        let touches = |&(start, end): &(u32, u32)| start <= number + 1 && number <= end;
        self.newest_first().iter().position(touches).unwrap_or(usize::from(self.count))
    }

    /// A packet arrived out of order: moves its block to the front.
    #[inline]
    pub(crate) fn add(&mut self, number: u32) {
        let (index, count) = (self.index_of(number), usize::from(self.count));
        let mut block = (number, number + 1);
        if index < count {
            merge(&mut block, self.blocks[index]);
        } else {
            self.count = (count + 1).min(NUM_SACKS) as u8;
        }
        for later in (0..index.min(NUM_SACKS - 1)).rev() {
            self.blocks[later + 1] = self.blocks[later];
        }
        self.blocks[0] = block;
        if index < count && count > 1 {
            self.coalesce();
        }
    }

    /// Merges all blocks that meet the first one into it.
    fn coalesce(&mut self) {
        let mut first = self.blocks[0];
        let mut kept = 1;
        for at in 1..usize::from(self.count) {
            let block = self.blocks[at];
            if block.0 <= first.1 && first.0 <= block.1 {
                merge(&mut first, block);
            } else {
                self.blocks[kept] = block;
                kept += 1;
            }
        }
        self.blocks[0] = first;
        self.count = kept as u8;
    }

    /// Removes the blocks that are now in order, below `next`.
    pub(crate) fn remove_below(&mut self, next: u32) {
        let mut kept = 0;
        for at in 0..usize::from(self.count) {
            if self.blocks[at].0 > next {
                self.blocks[kept] = self.blocks[at];
                kept += 1;
            }
        }
        self.count = kept as u8;
    }
}

fn merge(block: &mut (u32, u32), other: (u32, u32)) {
    *block = (block.0.min(other.0), block.1.max(other.1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn after(numbers: &[u32]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        numbers.iter().for_each(|&number| blocks.add(number));
        blocks
    }

    #[test]
    fn the_block_that_changed_last_comes_first() {
        assert_eq!(after(&[3, 7, 11]).newest_first(), [(11, 12), (7, 8), (3, 4)]);
        assert_eq!(after(&[3, 7, 11, 8]).newest_first(), [(7, 9), (11, 12), (3, 4)]);
        assert_eq!(after(&[3, 7, 11, 3]).newest_first(), [(3, 4), (11, 12), (7, 8)]);
    }

    #[test]
    fn blocks_that_meet_are_merged() {
        assert_eq!(after(&[3, 5, 9, 4]).newest_first(), [(3, 6), (9, 10)]);
    }

    #[test]
    fn of_five_blocks_the_oldest_is_dropped() {
        let blocks = after(&[3, 5, 7, 9, 11]);
        assert_eq!(blocks.newest_first(), [(11, 12), (9, 10), (7, 8), (5, 6)]);
        assert_eq!(blocks.index_of(3), 4);
    }

    #[test]
    fn blocks_in_order_are_no_longer_reported() {
        let mut blocks = after(&[3, 7, 11]);
        blocks.remove_below(7);
        assert_eq!(blocks.newest_first(), [(11, 12)]);
    }

    proptest! {
        #[test]
        fn blocks_report_received_packets_once_the_latest_first(
            numbers in prop::collection::vec(1u32..40, 1..60),
            floor in 1u32..40,
        ) {
            let (mut blocks, mut arrived) = (SackBlocks::default(), BTreeSet::new());
            for number in numbers {
                blocks.add(number);
                arrived.insert(number);
                let (start, end) = blocks.newest_first()[0];
                prop_assert!((start..end).contains(&number));
                let reported: Vec<u32> = blocks.newest_first().iter().flat_map(|&(s, e)| s..e).collect();
                let distinct: BTreeSet<u32> = reported.iter().copied().collect();
                prop_assert_eq!(reported.len(), distinct.len());
                prop_assert!(distinct.is_subset(&arrived));
            }
            blocks.remove_below(floor);
            prop_assert!(blocks.newest_first().iter().all(|block| block.0 > floor));
        }
    }
}

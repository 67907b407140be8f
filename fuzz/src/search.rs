//! A search without a fuzzer: random inputs, and changed ones of those that were run before.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Inputs that are remembered and changed.
const REMEMBERED: usize = 512;
const LONGEST: usize = 400;

/// A source of inputs: the same from the same seed.
pub struct Search {
    random: SplitMix64,
    remembered: Vec<Vec<u8>>,
}

impl Search {
    /// A search from `seed`.
    pub fn new(seed: u64) -> Search {
        Search { random: SplitMix64::seed_from_u64(seed), remembered: Vec::new() }
    }

    fn below(&mut self, end: usize) -> usize {
        (self.random.next_u64() % end.max(1) as u64) as usize
    }

    fn fresh(&mut self) -> Vec<u8> {
        let len = 1 + self.below(LONGEST);
        (0..len.div_ceil(8)).flat_map(|_| self.random.next_u64().to_le_bytes()).take(len).collect()
    }

    /// Gives `run` the next input.
    pub fn step(&mut self, run: impl FnOnce(&[u8])) {
        if self.remembered.len() < REMEMBERED {
            let input = self.fresh();
            run(&input);
            return self.remembered.push(input);
        }
        let at = self.below(REMEMBERED);
        if self.below(16) == 0 {
            self.remembered[at] = self.fresh();
        }
        let mut input = std::mem::take(&mut self.remembered[at]);
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        run(&input);
        self.remembered[at] = input;
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        match self.below(6) {
            0 | 1 if !input.is_empty() => input[at] = self.random.next_u64() as u8,
            2 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            3 => input.truncate(at + 1),
            4 => {
                // A piece of another input goes in.
                let other = self.below(REMEMBERED);
                let piece = &self.remembered[other];
                let from = if piece.is_empty() { 0 } else { at % piece.len() };
                let piece = piece[from..(from + 40).min(piece.len())].to_vec();
                input.splice(at..at, piece);
                input.truncate(LONGEST);
            }
            _ => input.insert(at, self.random.next_u64() as u8),
        }
    }
}

/// Runs as many inputs as the first argument says, from the seed that the second says, and prints
/// how it went.
///
/// # Errors
/// If an argument is no number.
pub fn main(name: &str, run: fn(&[u8])) -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let inputs: u64 = arguments.next().as_deref().unwrap_or("100000").parse()?;
    let seed: u64 = arguments.next().as_deref().unwrap_or("1").parse()?;
    let began = std::time::Instant::now();
    let mut search = Search::new(seed);
    for _ in 0..inputs {
        search.step(run);
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{name}: {inputs} inputs from seed {seed} in {seconds:.0} s, {}", peak_memory());
    Ok(())
}

/// The most memory that the process ever had, from Linux's /proc.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(String::new, |size| format!("at most {} of memory", size.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_a_packet_or_an_error() {
        let mut search = Search::new(2);
        (0..20_000).for_each(|_| search.step(crate::udt_codec::run));
    }

    #[test]
    fn a_udt_connection_survives_arbitrary_events() {
        let mut search = Search::new(2);
        (0..20_000).for_each(|_| search.step(crate::udt_engine::run));
    }
}

//! Free stretches of a line without end: the lowest that is long enough is found in O(√n) steps that are very cheap.

/// Most holes in a chunk.
const CHUNK: usize = 256;

/// A free stretch: first place and length.
type Hole = (u64, u64);

/// Neighbouring holes, and the length of the longest.
struct Chunk {
    holes: Vec<Hole>,
    longest: u64,
}

impl Chunk {
    fn new(holes: Vec<Hole>) -> Self {
        let longest = longest(&holes);
        Self { holes, longest }
    }
}

fn longest(holes: &[Hole]) -> u64 {
    holes.iter().map(|it| it.1).max().unwrap_or(0)
}

/// What is free below the highest place taken; above it everything is.
#[derive(Default)]
pub(super) struct Holes {
    /// By place, none empty. Holes don't touch each other, nor `top`.
    chunks: Vec<Chunk>,
    /// Nothing is taken from here on.
    top: u64,
}

impl Holes {
    /// Takes the lowest free stretch of a length and returns where it begins.
    pub(super) fn take(&mut self, length: u64) -> u64 {
        let Some(at) = self.chunks.iter().position(|it| it.longest >= length) else {
            let start = self.top;
            self.top += length;
            return start;
        };
        let chunk = &mut self.chunks[at];
        let fits = chunk.holes.iter().position(|it| it.1 >= length);
        let index = fits.unwrap_or(0);
        let (start, room) = chunk.holes[index];
        if room > length {
            chunk.holes[index] = (start + length, room - length);
        } else {
            chunk.holes.remove(index);
        }
        if room == chunk.longest {
            chunk.longest = longest(&chunk.holes);
        }
        if chunk.holes.is_empty() {
            self.chunks.remove(at);
        }
        start
    }

    /// Gives a stretch back that was taken.
    pub(super) fn give(&mut self, start: u64, length: u64) {
        let (mut low, mut high) = (start, start + length);
        // The chunk of the last hole below, or the first one.
        let after = self.chunks.partition_point(|it| it.holes[0].0 < start);
        let mut at = after.saturating_sub(1);
        if let Some(chunk) = self.chunks.get_mut(at) {
            let mut index = chunk.holes.partition_point(|it| it.0 < start);
            if index > 0 && chunk.holes[index - 1].0 + chunk.holes[index - 1].1 == low {
                index -= 1;
                low = chunk.holes.remove(index).0;
            }
            if index < chunk.holes.len() && chunk.holes[index].0 == high {
                high += chunk.holes.remove(index).1;
            } else if index == chunk.holes.len() {
                let next = self.chunks.get_mut(at + 1);
                if let Some(next) = next.filter(|it| it.holes[0].0 == high) {
                    high += next.holes.remove(0).1;
                    next.longest = longest(&next.holes);
                    if next.holes.is_empty() {
                        self.chunks.remove(at + 1);
                    }
                }
            }
            let chunk = &mut self.chunks[at];
            if high < self.top {
                // Longer than those that it took in.
                chunk.holes.insert(index, (low, high - low));
                chunk.longest = chunk.longest.max(high - low);
            } else {
                chunk.longest = longest(&chunk.holes);
            }
            if chunk.holes.is_empty() {
                self.chunks.remove(at);
            } else if chunk.holes.len() > CHUNK {
                let upper = chunk.holes.split_off(CHUNK / 2);
                chunk.longest = longest(&chunk.holes);
                at += 1;
                self.chunks.insert(at, Chunk::new(upper));
            }
        } else if high < self.top {
            self.chunks.push(Chunk::new(vec![(low, high - low)]));
        }
        if high == self.top {
            self.top = low;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Holes;

    /// Against a map of single places.
    #[test]
    fn takes_the_lowest_that_fits() {
        let (mut holes, mut taken) = (Holes::default(), vec![false; 8_000]);
        let mut live: Vec<(u64, u64)> = Vec::new();
        let mut state = 7u64;
        for step in 0..6_000u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step | 1);
            let random = state >> 33;
            if random % 5 < 3 && live.len() < 900 {
                let length = 1 + random / 5 % 7;
                let is_free =
                    |start: &usize| taken[*start..start + length as usize].iter().all(|it| !it);
                let expected = (0..taken.len() - length as usize).find(is_free);
                let start = holes.take(length);
                assert_eq!(Some(start as usize), expected, "step {step}");
                taken[start as usize..(start + length) as usize].fill(true);
                live.push((start, length));
            } else if !live.is_empty() {
                let (start, length) = live.swap_remove(random as usize / 5 % live.len());
                holes.give(start, length);
                taken[start as usize..(start + length) as usize].fill(false);
            }
        }
    }
}

//! Finds the indexed sets that share tags with a set, in ascending order of positions.

use super::index::CoverIndex;
use crate::work::slots::Postings;
use twindex::error::Result;

/// Number of positions in a window. The postings of tags that several sets have are merged window by window.
const WINDOW: usize = 1 << 12;
/// Maximum number of positions that are sorted instead of merged in windows.
const FEW: usize = 64;
/// Number of tags between the current tag and the one whose slot is prefetched.
const AHEAD: usize = 8;

/// Working memory that is reused by consecutive lookups.
#[derive(Default)]
pub(super) struct LookupScratch {
    /// The positions found by tags that only one indexed set has.
    single: Vec<u32>,
    /// One bit for each position of a window.
    window: Vec<u64>,
}

impl LookupScratch {
    /// Finds the positions in `index`, from `from` on, of all sets that have at least one of `tags`. Passes each
    /// position once to `ends`, in ascending order, until `ends` returns true.
    pub(super) fn visit(
        &mut self,
        index: &CoverIndex,
        tags: &[u32],
        from: u32,
        mut ends: impl FnMut(u32) -> Result<bool>,
    ) -> Result<()> {
        let Self { single, window } = self;
        let mut chains: Vec<&[u32]> = Vec::new();
        single.clear();
        for (at, &tag) in tags.iter().enumerate() {
            if let Some(&later) = tags.get(at + AHEAD) {
                index.fetch(later);
            }
            match index.postings(tag) {
                Postings::None => {}
                Postings::One(place) => single.extend((place >= from).then_some(place)),
                Postings::Several(places) => {
                    let first = if from == 0 { 0 } else { places.partition_point(|&place| place < from) };
                    chains.extend((first < places.len()).then(|| &places[first..]));
                }
            }
        }
        let all = single.len() + chains.iter().map(|chain| chain.len()).sum::<usize>();
        if all <= FEW {
            single.extend(chains.drain(..).flatten());
        }
        single.sort_unstable();
        let mut rest = &single[..];
        // Processes the windows that contain positions, in order.
        window.resize(WINDOW / u64::BITS as usize, 0);
        while !chains.is_empty() {
            let next = chains.iter().map(|chain| chain[0]).chain(rest.first().copied()).min().unwrap_or(0);
            let start = next as usize / WINDOW * WINDOW;
            window.fill(0);
            let mut mark = |places: &mut &[u32]| {
                let end = places.iter().position(|&place| place as usize >= start + WINDOW);
                let (now, later) = places.split_at(end.unwrap_or(places.len()));
                for &place in now {
                    let at = place as usize - start;
                    window[at / 64] |= 1 << (at % 64);
                }
                *places = later;
            };
            chains.iter_mut().for_each(&mut mark);
            mark(&mut rest);
            chains.retain(|chain| !chain.is_empty());
            for (word, &bits) in window.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let place = start + 64 * word + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    if ends(place as u32)? {
                        return Ok(());
                    }
                }
            }
        }
        let mut last = None;
        for &place in rest {
            if last != Some(place) && ends(place)? {
                break;
            }
            last = Some(place);
        }
        Ok(())
    }
}

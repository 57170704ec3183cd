//! Computes lines, as the documentation of the crate defines them, with the suffix array of an established library. For
//! tests and benchmarks.

/// The words of all documents, as numbers, in which repeated runs are searched.
#[derive(Default)]
pub(crate) struct Texts {
    /// The number of each word in 3 bytes, big-endian, with a 0 after each document.
    bytes: Vec<u8>,
    /// The end of each document, in words.
    ends: Vec<u32>,
}

/// A run of repeated positions: document, position, source document, source position, number of positions.
pub(crate) type Run = (u32, u32, u32, u32, u32);

impl Texts {
    /// Adds a word to the current document, as a number of at least 1.
    pub(crate) fn push(&mut self, word: u32) {
        assert!((1..1 << 24).contains(&word), "too many different words");
        self.bytes.extend_from_slice(&word.to_be_bytes()[1..]);
    }

    /// Ends the current document.
    pub(crate) fn end(&mut self) {
        self.ends.push((self.bytes.len() / 3) as u32);
        self.bytes.extend_from_slice(&[0; 3]);
    }

    fn start(&self, document: usize) -> u32 {
        document.checked_sub(1).map_or(0, |before| self.ends[before] + 1)
    }

    /// Returns the runs of repeated positions along which the t-grams after the source are the same, sorted by document and
    /// position.
    pub(crate) fn runs(&self, t: usize, within: bool) -> Vec<Run> {
        let (sorted, bytes) = (divsufsort::sort(&self.bytes).into_parts().1, &self.bytes);
        let mut document_of = vec![0_u32; bytes.len() / 3];
        for (document, &end) in self.ends.iter().enumerate() {
            document_of[self.start(document) as usize..=end as usize].fill(document as u32);
        }
        let has_gram =
            |&word: &u32| word as usize + t <= self.ends[document_of[word as usize] as usize] as usize;
        let gram = |word: u32| &bytes[3 * word as usize..3 * (word as usize + t)];
        let mut source_of = vec![u32::MAX; document_of.len()];
        let mut end_group = |group: &[u32]| {
            let Some(&source) = group.iter().min() else { return };
            for &word in group.iter().filter(|&&word| word != source) {
                if within || document_of[word as usize] != document_of[source as usize] {
                    source_of[word as usize] = source;
                }
            }
        };
        // Suffixes with the same t-gram are adjacent.
        let mut group: Vec<u32> = Vec::new();
        let places = sorted.iter().filter_map(|&at| u32::try_from(at).ok());
        let words = places.filter(|at| at % 3 == 0).map(|at| at / 3).filter(has_gram);
        for word in words {
            if group.first().is_some_and(|&first| gram(first) != gram(word)) {
                end_group(&group);
                group.clear();
            }
            group.push(word);
        }
        end_group(&group);
        let mut runs: Vec<Run> = Vec::new();
        // The place that would extend the last run, and the place that follows in its source.
        let mut next = None;
        for (word, &source) in (0..).zip(&source_of) {
            if source == u32::MAX {
                continue;
            }
            let (document, first) = (document_of[word as usize], document_of[source as usize]);
            match runs.last_mut() {
                Some(last)
                    if next.is_some_and(|(here, beside)| {
                        here == word && last.0 == document && has_gram(&beside) && gram(beside) == gram(word)
                    }) =>
                {
                    last.4 += 1;
                    next = next.map(|(here, beside)| (here + 1, beside + 1));
                }
                _ => {
                    next = Some((word + 1, source + 1));
                    let position = |word: u32, document: u32| word - self.start(document as usize);
                    runs.push((document, position(word, document), first, position(source, first), 1));
                }
            }
        }
        runs
    }
}

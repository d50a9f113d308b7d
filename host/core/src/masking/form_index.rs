//! Texts that are looked for in another one, all at once: sorted, behind a filter of what they begin with. It takes some bytes
//! for each of theirs, where an automaton takes a hundred, and is made in the time of sorting.

use std::{collections::BTreeSet, ops::Range};

use super::SHORTEST_MASKED;

/// What every form begins with.
type Begin = [u8; SHORTEST_MASKED];

/// Forms of at least [`SHORTEST_MASKED`] bytes.
#[derive(Clone, Debug)]
pub(super) struct FormIndex {
    /// All forms, one after the other.
    text: Vec<u8>,
    /// In order.
    forms: Vec<Form>,
    /// A bit for the hash of each begin.
    filter: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Form {
    place: Range<usize>,
    /// The longest other form that it begins with.
    within: Option<usize>,
}

impl FormIndex {
    /// Of forms; shorter ones are left out.
    pub(super) fn of(forms: &BTreeSet<String>) -> Self {
        let forms = forms.iter().filter(|form| form.len() >= SHORTEST_MASKED);
        let bits = (forms.clone().count() * 16).next_power_of_two().max(64);
        let mut index = Self { text: Vec::new(), forms: Vec::new(), filter: vec![0; bits / 64] };
        let mut around: Vec<usize> = Vec::new();
        for form in forms {
            let form = form.as_bytes();
            if let Some((word, bit)) = form.first_chunk().map(|begin| index.bit(begin)) {
                index.filter.iter_mut().skip(word).take(1).for_each(|word| *word |= bit);
            }
            while around.last().is_some_and(|number| !form.starts_with(index.form(*number))) {
                around.pop();
            }
            let begin = index.text.len();
            index.text.extend(form);
            around.push(index.forms.len());
            let within = around.len().checked_sub(2).and_then(|number| around.get(number).copied());
            index.forms.push(Form { place: begin..index.text.len(), within });
        }
        index
    }

    /// Where forms stand in some bytes: from the left, the longest at each place, none within another one.
    pub(super) fn places_in<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = Range<usize>> + 'b {
        let mut from = 0;
        std::iter::from_fn(move || {
            let begins = from..bytes.len().saturating_sub(SHORTEST_MASKED - 1).max(from);
            for at in begins {
                if let Some(length) = bytes.get(at..).and_then(|rest| self.longest(rest)) {
                    from = at + length;
                    return Some(at..from);
                }
            }
            from = bytes.len();
            None
        })
    }

    /// The length of the longest form that some bytes begin with.
    fn longest(&self, rest: &[u8]) -> Option<usize> {
        let (word, bit) = self.bit(rest.first_chunk()?);
        if self.filter.get(word)? & bit == 0 {
            return None;
        }
        // Whatever form the bytes begin with, the last form that is not behind them begins with it as well.
        let behind = self.forms.partition_point(|form| self.text.get(form.place.clone()) <= Some(rest));
        let mut number = behind.checked_sub(1);
        let shared = self.form(number?).iter().zip(rest).take_while(|(one, other)| one == other).count();
        loop {
            let form = self.forms.get(number?)?;
            if form.place.len() <= shared {
                return Some(form.place.len());
            }
            number = form.within;
        }
    }

    fn form(&self, number: usize) -> &[u8] {
        let place = self.forms.get(number).map(|form| form.place.clone());
        place.and_then(|place| self.text.get(place)).unwrap_or_default()
    }

    /// The place of a begin in the filter.
    fn bit(&self, begin: &Begin) -> (usize, u64) {
        let hash = u64::from_le_bytes(*begin).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let bit = usize::try_from(hash).unwrap_or_default() % (self.filter.len() * 64);
        (bit / 64, 1 << (bit % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(forms: &[&str], text: &str) -> Vec<Range<usize>> {
        let forms: BTreeSet<String> = forms.iter().copied().map(str::to_owned).collect();
        FormIndex::of(&forms).places_in(text.as_bytes()).collect()
    }

    #[test]
    fn c_83_the_longest_form_at_each_place_is_found() {
        let forms = ["abcdefgh", "abcdefghij", "abcdefghijkl", "abcdefghz", "ijklmnop", "short"];
        assert_eq!(found_in(&forms, "abcdefghijkm abcdefghijkl"), [0..10, 13..25]);
        assert_eq!(found_in(&forms, "abcdefghz abcdefghy"), [0..9, 10..18]);
        assert_eq!(found_in(&forms, "abcdefghijklmnop"), std::slice::from_ref(&(0..12)));
        for none in ["", "abcdefg", "bcdefghi short", "zzzzzzzzzzzz"] {
            assert_eq!((found_in(&forms, none), found_in(&[], none)), (vec![], vec![]), "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn c_83_a_form_is_found_wherever_one_is(forms in proptest::collection::btree_set("[ab]{8,12}", 0..40), text in "[ab]{0,60}") {
            let forms: BTreeSet<String> = forms;
            let mut expected = Vec::new();
            let mut at = 0;
            while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
                let longest = forms.iter().filter(|form| rest.starts_with(form.as_str())).map(String::len).max();
                expected.extend(longest.map(|length| at..at + length));
                at += longest.unwrap_or(1);
            }
            let found: Vec<Range<usize>> = FormIndex::of(&forms).places_in(text.as_bytes()).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}

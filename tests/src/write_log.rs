//! The writes of an operator as a proxy saw them: when each came and when it was answered, so that it is known which had been sent
//! when something ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A write. Its places are in one row with those of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedWrite {
    /// The verb of HTTP.
    pub method: String,
    /// Where.
    pub path: String,
    /// The place at which it came.
    pub came: u64,
    /// The answer; none where none came.
    pub answer: Option<LoggedAnswer>,
}

/// What a server answered to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedAnswer {
    /// The place at which it was on its way back.
    pub place: u64,
    /// Whether it did what was asked.
    pub is_done: bool,
    /// The version of the object that it told then.
    pub revision: Option<u64>,
}

impl LoggedWrite {
    /// Whether the object has had this version since.
    pub fn made(&self, revision: u64) -> bool {
        self.answer.is_some_and(|answer| answer.revision == Some(revision))
    }

    /// Whether it was sent and not answered at this place.
    pub fn is_under_way(&self, place: u64) -> bool {
        self.came < place && self.answer.is_none_or(|answer| answer.place > place)
    }
}

/// All writes since the log was begun.
#[derive(Debug, Default)]
pub struct WriteLog(
    /// Protects the row; held for one entry.
    Mutex<Row>,
);

#[derive(Debug, Default)]
struct Row {
    next: u64,
    /// In the order in which they came.
    writes: Vec<LoggedWrite>,
}

impl Row {
    fn place(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl WriteLog {
    fn row(&self) -> MutexGuard<'_, Row> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew.
    pub fn begin(&self) {
        self.row().writes.clear();
    }

    /// A write has come: the place at which it did.
    pub fn came(&self, method: &str, path: &str) -> u64 {
        let mut row = self.row();
        let came = row.place();
        row.writes.push(LoggedWrite { method: method.to_owned(), path: path.to_owned(), came, answer: None });
        came
    }

    /// The write that came at this place has been answered.
    pub fn answered(&self, came: u64, is_done: bool, revision: Option<u64>) {
        let mut row = self.row();
        let place = row.place();
        if let Ok(at) = row.writes.binary_search_by_key(&came, |write| write.came)
            && let Some(write) = row.writes.get_mut(at)
        {
            write.answer = Some(LoggedAnswer { place, is_done, revision });
        }
    }

    /// All that came.
    pub fn all(&self) -> Vec<LoggedWrite> {
        self.row().writes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_answers_have_their_places_in_one_row() {
        let log = WriteLog::default();
        let (first, second) = (log.came("PUT", "/a"), log.came("POST", "/b"));
        log.answered(second, true, Some(7));
        let expected = [
            LoggedWrite { method: "PUT".to_owned(), path: "/a".to_owned(), came: 1, answer: None },
            LoggedWrite {
                method: "POST".to_owned(),
                path: "/b".to_owned(),
                came: 2,
                answer: Some(LoggedAnswer { place: 3, is_done: true, revision: Some(7) }),
            },
        ];
        let all = log.all();
        assert_eq!(all, expected);
        assert!(all[1].made(7) && !all[1].made(8) && !all[0].made(7));
        assert_eq!([1, 2, 3].map(|place| all[0].is_under_way(place)), [false, true, true]);
        assert_eq!([2, 3, 4].map(|place| all[1].is_under_way(place)), [false, false, false]);
        log.begin();
        log.answered(first, true, Some(9));
        assert_eq!(log.all(), []);
    }
}

//! Tables for people: rows in aligned columns.

/// The letters of a cell that are shown: names of others may be as long as they like, and a line is read by somebody.
const LONGEST_CELL: usize = 120;

/// The lines of a table, the first row its heads. Columns of numbers are aligned by their ends where `is_number` says so.
pub(crate) fn lines<const COLUMNS: usize>(rows: &[[String; COLUMNS]], is_number: [bool; COLUMNS]) -> Vec<String> {
    let rows: Vec<[String; COLUMNS]> = rows.iter().map(|row| row.each_ref().map(|cell| cut(cell))).collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).zip(is_number).map(|((cell, width), is_number)| match is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A cell, of which what is too long ends with an ellipsis.
fn cut(cell: &str) -> String {
    match cell.char_indices().nth(LONGEST_CELL) {
        None => cell.to_owned(),
        Some(_) => cell.chars().take(LONGEST_CELL - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "S"], ["ä", "1.5"], ["long one", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(lines(&rows, [false, true]), ["NAME        S", "ä         1.5", "long one"]);
    }

    #[test]
    fn a_cell_is_cut_where_it_is_longer_than_anybody_reads() {
        let rows = [["ä".repeat(LONGEST_CELL), "1".to_owned()], ["x".repeat(70_000), "2".to_owned()]];
        let cut = "x".repeat(LONGEST_CELL - 1);
        assert_eq!(lines(&rows, [false, true]), [format!("{}  1", "ä".repeat(LONGEST_CELL)), format!("{cut}…  2")]);
    }
}

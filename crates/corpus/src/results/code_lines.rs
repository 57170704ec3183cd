//! Compares the lines of code in two texts: fenced blocks, indented lines, and lines between backticks, as in Markdown.

/// Number of spaces that begin an indented line of code.
const INDENT: &str = "    ";

/// Returns whether two texts have the same lines of code, apart from white space.
pub(crate) fn same_code(a: &str, b: &str) -> bool {
    code(a).eq(code(b))
}

/// Returns the characters of the lines of code in a text, without white space.
fn code(text: &str) -> impl Iterator<Item = char> {
    let mut is_fenced = false;
    let of_line = move |line: &str| -> Vec<char> {
        let start = line.trim_start();
        let is_fence = start.starts_with("```") || start.starts_with("~~~");
        is_fenced ^= is_fence;
        let is_quoted = start.starts_with('`') && start.trim_end().ends_with('`');
        let is_code = is_fenced || is_quoted || line.starts_with(INDENT) || line.starts_with('\t');
        let code = if is_code { line } else { "" };
        code.chars().filter(|&c| !c.is_whitespace() && c != '`').collect()
    };
    text.lines().flat_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_are_fenced_indented_or_between_backticks() {
        let shown = |text: &str| code(text).collect::<String>();
        assert_eq!(shown("Run `ls`!\n    a = b\n\tc\n`ls -l` \nno (code)"), "a=bcls-l");
        assert_eq!(shown("```sh\nx % y\n```\nz %"), "shx%y");
        assert!(same_code("Mix:\n`a / b`", "mix\n`a /b`") && !same_code("mix\n`a % b`", "mix\n`a / b`"));
        assert!(same_code("a % b", "a / b"), "not in a line of code");
    }
}

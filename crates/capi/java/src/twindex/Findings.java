package twindex;

import java.util.ArrayList;
import java.util.List;

/**
 * The result of verifying all files of an index.
 *
 * @param problems the problems; none if the index is undamaged
 * @param notes harmless observations
 * @param bytes the number of bytes that were verified
 */
public record Findings(List<String> problems, List<String> notes, long bytes) {
    /** Copies findings and frees them. */
    static Findings of(long findings) {
        try {
            List<String> problems = new ArrayList<>();
            for (long at = 0; at < Lib.twindex_findings_problems(findings); at++) {
                problems.add(Scratch.text(Lib.twindex_findings_problem(findings, at)));
            }
            List<String> notes = new ArrayList<>();
            for (long at = 0; at < Lib.twindex_findings_notes(findings); at++) {
                notes.add(Scratch.text(Lib.twindex_findings_note(findings, at)));
            }
            return new Findings(List.copyOf(problems), List.copyOf(notes), Lib.twindex_findings_bytes(findings));
        } finally {
            Lib.twindex_findings_free(findings);
        }
    }
}

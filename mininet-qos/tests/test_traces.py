"""Traces of a link's rate."""

from __future__ import annotations

import unittest

from mininet_qos import commands


class Traces(unittest.TestCase):
    def test_the_last_time_is_the_beginning_of_the_next_round(self) -> None:
        self.assertEqual(commands.opportunities("0\n2\n2\n4\n"), (2, 0, 2, 0))
        self.assertEqual(commands.opportunities("5\r\n5\r\n"), (2, 0, 0, 0, 0))

    def test_malformed_traces_are_refused(self) -> None:
        for text, problem in [
            ("", " must end with a time from 1 to 600000 ms"),
            ("0\n", " must end with a time from 1 to 600000 ms"),
            ("3\n2\n", ":2: the times must ascend"),
            ("1\n1.5\n", ":2: '1.5' is not a time in ms: write a whole number"),
            ("600001\n", " must end with a time from 1 to 600000 ms"),
            ("1\n" * 1001, " has more than 1000 opportunities in one ms"),
        ]:
            with self.subTest(problem), self.assertRaises(ValueError) as raised:
                commands.opportunities(text)
            self.assertEqual(str(raised.exception), problem)


if __name__ == "__main__":
    unittest.main()

"""Regular expressions that cost nothing until they are used."""

import re


class Pattern:
    """`re.compile(source, flags)`, put off to the first call of one of its methods.

    Compiling the forty expressions of this package takes 10 ms of CPU, at every start of a
    command; most notes need ten of them. After the first call a method is a plain attribute.
    """

    def __init__(self, source, flags=0):
        self._source = source
        self._flags = flags

    def __getattr__(self, name):
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method

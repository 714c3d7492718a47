"""How the site reads docstrings: the package writes `Example:`, griffe knows `Examples:`."""

import re

import griffe


class Examples(griffe.Extension):
    """Calls the examples of a docstring by the name that griffe's Google parser knows."""

    def on_object(self, *, obj, **kwargs):
        """Renames the section of one docstring."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.M)

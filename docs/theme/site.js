// Marks short code, such as the names of options, so that site.css keeps it on one line. Browsers break lines at hyphens.
for (const code of document.querySelectorAll(".content :not(pre) > code")) {
    code.classList.toggle("unbroken", code.textContent.length <= 28);
}
